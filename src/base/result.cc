// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/base/result.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace sw {

std::string_view code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid argument";
    case ErrorCode::kNotFound: return "not found";
    case ErrorCode::kPermission: return "permission denied";
    case ErrorCode::kUnavailable: return "unavailable";
    case ErrorCode::kCorrupt: return "corrupt";
    case ErrorCode::kLimitExceeded: return "limit exceeded";
    case ErrorCode::kConflict: return "conflict";
    case ErrorCode::kGuestExit: return "guest exit";
    case ErrorCode::kGuestStopped: return "guest stopped";
    case ErrorCode::kGuestTrap: return "guest trap";
    case ErrorCode::kGuestStackOverflow: return "guest stack overflow";
    case ErrorCode::kInternal: return "internal";
  }
  return "unknown";
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

Error errno_error(int errno_value, std::string_view what) {
  ErrorCode code = ErrorCode::kUnavailable;
  if (errno_value == ENOENT || errno_value == ENOTDIR) code = ErrorCode::kNotFound;
  if (errno_value == EACCES || errno_value == EPERM) code = ErrorCode::kPermission;
  if (errno_value == EINVAL || errno_value == EISDIR) code = ErrorCode::kInvalidArgument;
  return Error{code, std::string(what) + ": " + std::generic_category().message(errno_value), 0};
}

}  // namespace sw
