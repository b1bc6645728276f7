// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/engine/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sandbox_workers/base/utf8.h"

namespace sw {

namespace {

Error invalid(std::string message) {
  return Error{ErrorCode::kInvalidArgument, std::move(message), 0};
}

bool has_nul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

bool is_env_name(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  };
  return !name.empty() && is_letter(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace

std::shared_ptr<wasi::InputSource> text_input(std::string text) {
  return std::make_shared<wasi::BytesInput>(std::move(text));
}

wasi::Errno RunOutput::write(wasi::Stream stream, BytesView bytes) {
  std::string& text = stream == wasi::Stream::kStdout ? out : err;
  text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return wasi::Errno::kSuccess;
}

Result<void> validate(const Run& request) {
  if (request.ends_context) {
    if (request.context.empty()) return invalid("ends_context needs a context");
    if (!request.code.empty()) return invalid("a run that ends its context has no code");
  } else if (request.code.find_first_not_of(" \t\r\n\f\v") == std::string::npos) {
    return invalid("Non-empty code is required");
  }
  if (request.code.size() > kCodeBytesMax) {
    return invalid(
        fmt::format("the code has {} bytes; the limit is {}", request.code.size(), kCodeBytesMax));
  }
  if (const auto at = first_invalid_utf8(request.code)) {
    return invalid(fmt::format("the code is not valid UTF-8 (byte {})", *at));
  }
  if (has_nul(request.file_name)) return invalid("the file name contains a NUL byte");
  for (const auto& [name, value] : request.env) {
    if (!is_env_name(name))
      return invalid(fmt::format("invalid environment variable name '{}'", name));
    if (has_nul(value))
      return invalid(fmt::format("environment variable {} contains a NUL byte", name));
    if (first_invalid_utf8(value))
      return invalid(fmt::format("environment variable {} is not valid UTF-8", name));
  }
  for (const std::string& argument : request.args) {
    if (has_nul(argument)) return invalid("an argument contains a NUL byte");
    if (first_invalid_utf8(argument)) return invalid("an argument is not valid UTF-8");
  }
  return {};
}

}  // namespace sw
