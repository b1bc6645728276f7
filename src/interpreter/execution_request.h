// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/engine.h"
#include "sandbox_workers/protocol/http.h"

namespace sw::interpreter {

/// The body of POST /execute, checked in the protocol's order; else why not.
Result<Run> read_execution_request(const protocol::Request& http, const engine::EngineInfo& info);

}  // namespace sw::interpreter
