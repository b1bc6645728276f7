// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What went wrong, in one shape for all of the program: from a full disk to a request that is
// refused. An error that guest code raised is not an Error: it is part of a completed run's
// outcome.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

/// Everything of this project is in namespace sw; `sandbox_workers` is its long name.
namespace sw {}
namespace sandbox_workers = sw;

namespace sw {

/// What kind of failure an Error is. error_codes.def says what each means and how it is told to
/// whom.
enum class ErrorCode : std::uint8_t {
#define SW_ERROR_CODE(enumerator, log, protocol, http, host_errno, exit) enumerator,
#include "sandbox_workers/base/error_codes.def"
#undef SW_ERROR_CODE
};

/// A row of error_codes.def.
struct ErrorCodeInfo {
  ErrorCode code;
  std::string_view name;           ///< for logs: "not found"
  std::string_view protocol_name;  ///< "VALIDATION_FAILED"; several codes share one
  int http_status = 0;
  int host_errno = 0;
  int exit_status = 0;  ///< of a command that failed this way
};

const ErrorCodeInfo &info_of(ErrorCode code);
inline std::string_view code_name(ErrorCode code) { return info_of(code).name; }
/// The code that a protocol name with a status stands for: the row of both, else the first with
/// that name, else kUnreachable, because whoever says so is not one of us.
ErrorCode find_error_code(std::string_view protocol_name, int http_status);

struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::int32_t exit_code = 0;  ///< with kGuestExit only
  /// Figures and names for programs: "contextId", "path", "operation", "errno", "maxSize", …
  std::map<std::string, std::string, std::less<>> context = {};

  /// The same error, its message prefixed by what was being done: "doing: message".
  Error while_doing(std::string_view doing) &&;
  /// The same error as a failure of the host: what the storage calls "not found" is no mistake of
  /// the user's.
  Error as_fault() &&;
};

/// The Error for a failed system call: "what: strerror(errno_value)", with a fitting code.
Error errno_error(int errno_value, std::string_view what);

}  // namespace sw
