// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/base/error.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "sandbox_workers/base/result.h"

namespace sw {

namespace {

// In the order of the enumerators.
constexpr std::array kErrorCodes = {
#define SW_ERROR_CODE(enumerator, log, protocol, http, host_errno, exit) \
  ErrorCodeInfo{ErrorCode::enumerator, log, protocol, http, host_errno, exit},
#include "sandbox_workers/base/error_codes.def"
#undef SW_ERROR_CODE
};

constexpr int kCallersMistake = 2;

}  // namespace

const ErrorCodeInfo& info_of(ErrorCode code) { return kErrorCodes[static_cast<std::size_t>(code)]; }

ErrorCode find_error_code(std::string_view protocol_name, int http_status) {
  const auto exact = std::ranges::find_if(kErrorCodes, [&](const ErrorCodeInfo& info) {
    return info.protocol_name == protocol_name && info.http_status == http_status;
  });
  if (exact != kErrorCodes.end()) return exact->code;
  const auto named = std::ranges::find(kErrorCodes, protocol_name, &ErrorCodeInfo::protocol_name);
  return named != kErrorCodes.end() ? named->code : ErrorCode::kUnreachable;
}

void end_for_misuse(std::string_view what, std::string_view message) {
  std::fprintf(stderr, "sandbox-workers: %.*s%s%.*s\n", static_cast<int>(what.size()), what.data(),
               message.empty() ? "" : ": ", static_cast<int>(message.size()), message.data());
  std::abort();
}

Error Error::while_doing(std::string_view doing) && {
  message.insert(0, std::string(doing) + ": ");
  return std::move(*this);
}

Error Error::as_fault() && {
  if (info_of(code).exit_status == kCallersMistake) code = ErrorCode::kInternal;
  return std::move(*this);
}

Error errno_error(int errno_value, std::string_view what) {
  ErrorCode code = ErrorCode::kUnavailable;
  if (errno_value == ENOENT || errno_value == ENOTDIR) code = ErrorCode::kNotFound;
  if (errno_value == EACCES || errno_value == EPERM) code = ErrorCode::kPermission;
  if (errno_value == EINVAL || errno_value == EISDIR) code = ErrorCode::kInvalidArgument;
  return Error{code, std::string(what) + ": " + std::generic_category().message(errno_value), 0};
}

}  // namespace sw
