// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "sandbox_workers/protocol/http.h"
#include "sandbox_workers/protocol/worker.h"

namespace sw::protocol {

/// An Interpreter over HTTP: docs/protocol.md. The path begins with "/" after the Interpreter's
/// key.
Response serve_interpreter(Interpreter& interpreter, const Request& request, std::int64_t now_ms);

}  // namespace sw::protocol
