// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// All that a program needs to run code, and that an engine without Wasm is written with:
// docs/embedding.md, docs/engines.md.

#include "sandbox_workers/engine/all_languages.h"
#include "sandbox_workers/engine/engine.h"
#include "sandbox_workers/engine/machine.h"
#include "sandbox_workers/engine/run.h"
#include "sandbox_workers/workspace/mirror.h"
#include "sandbox_workers/workspace/workspace.h"
