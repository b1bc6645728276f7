// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What turns an engine into a runtime Worker: runs and code contexts behind requests, and routes of
// one's own. docs/engines.md, docs/protocol.md.

#include "sandbox_workers/engine.h"
#include "sandbox_workers/interpreter/runtime_worker.h"
#include "sandbox_workers/protocol/answers.h"
#include "sandbox_workers/protocol/http.h"
#include "sandbox_workers/protocol/profile.h"
#include "sandbox_workers/protocol/protocol.h"
#include "sandbox_workers/protocol/worker.h"
