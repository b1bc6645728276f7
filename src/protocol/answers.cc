// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/protocol/answers.h"

#include <algorithm>

namespace sw::protocol {

namespace {

constexpr std::size_t kKeyBytesMax = 128;

}  // namespace

Response not_found_response(std::int64_t now_ms) {
  return error_response(Error{ErrorCode::kNotFound, "Not found", 0}, now_ms);
}

Response method_not_allowed_response(std::string_view methods, std::int64_t now_ms) {
  Response response =
      error_response(Error{ErrorCode::kMethodNotAllowed, "Method not allowed", 0}, now_ms);
  response.headers.emplace_back("allow", methods);
  return response;
}

bool is_interpreter_key(std::string_view key) {
  return !key.empty() && key.size() <= kKeyBytesMax && std::ranges::all_of(key, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

}  // namespace sw::protocol
