// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What turns an engine into a runtime Worker: runs and code contexts behind requests, and routes of
// one's own. docs/engines.md, docs/protocol.md.

#include "sandbox_workers/engine.h"
#include "sandbox_workers/interpreter/interpreter_worker.h"
#include "sandbox_workers/runtime/answers.h"
#include "sandbox_workers/runtime/http.h"
#include "sandbox_workers/runtime/profile.h"
#include "sandbox_workers/runtime/protocol.h"
#include "sandbox_workers/runtime/worker.h"
