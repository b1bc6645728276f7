// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What an engine that is a Wasm interpreter is written with: a Language and its Guest for
// Machine::load, or the parts (WASI host, budget, images) for an engine that does everything
// itself. docs/engines.md.

#include "sandbox_workers/bake/manifest.h"
#include "sandbox_workers/base/utf8.h"
#include "sandbox_workers/engine.h"
#include "sandbox_workers/engine/budget.h"
#include "sandbox_workers/engine/language.h"
#include "sandbox_workers/wasi/create_wasi.h"
#include "sandbox_workers/wasi/layout.h"
#include "sandbox_workers/wasi/wasi.h"
#include "sandbox_workers/wasm/guest_thread.h"
#include "sandbox_workers/wasm/image.h"
#include "sandbox_workers/wasm/instance.h"
#include "sandbox_workers/wasm/linker.h"
#include "sandbox_workers/wasm/module.h"
