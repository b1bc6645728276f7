// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What Workers answer over HTTP: JSON, and one shape for everything that is not a success.

#include <cstdint>
#include <string>
#include <string_view>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/protocol/http.h"
#include "sandbox_workers/protocol/protocol.h"

namespace sw::protocol {

/// What must not be asked: kInvalidArgument.
Error refusal(std::string message);
Error context_not_found(std::string_view id);
/// 1 to 128 bytes of UTF-8 without NUL. Errors: kInvalidArgument.
Result<void> check_context_id(std::string_view id);

/// "2026-01-31T12:34:56.789Z", of milliseconds since the epoch.
std::string iso_time(std::int64_t ms);

/// With a body that is JSON text already.
Response json_text_response(int status, std::string body);
/// {code, message, context, httpStatus, timestamp, operation?}: error_codes.def says code and status.
Response error_response(const Error& error, std::int64_t now_ms);
/// 404
Response not_found_response(std::int64_t now_ms);
/// 405 with Allow: `methods` are like "GET, POST".
Response method_not_allowed_response(std::string_view methods, std::int64_t now_ms);

/// 1 to 128 of A-Z a-z 0-9 . _ -
bool is_interpreter_key(std::string_view key);

}  // namespace sw::protocol
