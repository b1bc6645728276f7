// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sandbox_workers/base/value_or.h"
#include "sandbox_workers/engine/engine.h"
#include "sandbox_workers/runtime/http.h"
#include "sandbox_workers/runtime/protocol.h"

namespace sw::interpreter {

/// The body of POST /execute, checked in the protocol's order; else why not.
ValueOr<engine::RunRequest, runtime::ErrorBody> read_execution_request(const runtime::Request& http,
                                                                       const engine::EngineInfo& info);

}  // namespace sw::interpreter
