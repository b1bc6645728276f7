// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Result<T>: the value of an operation that can be expected to fail, or an Error saying why not.
// Exceptions stay inside a room; between rooms failures travel as Results. An error raised by guest
// code is not an Error: it is part of a completed run's outcome.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sandbox_workers/base/value_or.h"

/// Everything of this project is in namespace sw; `sandbox_workers` is its long name.
namespace sw {}
namespace sandbox_workers = sw;

namespace sw {

/// What kind of failure an Error is. `code_name` gives the text used in logs and messages.
enum class ErrorCode : std::uint8_t {
  kInvalidArgument,  ///< the caller's input is wrong
  kNotFound,
  kPermission,
  kUnavailable,    ///< the host cannot do it now (disk full, no such kernel feature)
  kCorrupt,        ///< stored bytes are damaged
  kLimitExceeded,  ///< a limit would be passed
  kConflict,       ///< somebody else owns it or has changed it meanwhile
  kGuestExit,      ///< the guest called proc_exit; Error::exit_code is its status
  kGuestStopped,   ///< the host stopped the guest (deadline or cancellation)
  kGuestTrap,      ///< the guest trapped (unreachable, out-of-bounds access, …)
  kGuestStackOverflow,
  kInternal,  ///< a fault of ours
};

std::string_view code_name(ErrorCode code);

struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::int32_t exit_code = 0;  ///< with kGuestExit only

  /// The same error, its message prefixed by what was being done: "doing: message".
  Error while_doing(std::string_view doing) &&;
};

/// Either a T or an Error. Never empty.
template <class T>
class [[nodiscard]] Result : public ValueOr<T, Error> {
 public:
  using ValueOr<T, Error>::ValueOr;

  explicit operator bool() const { return this->ok(); }
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit on purpose

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const& {
    if (ok()) end_for_misuse("the error of a successful result was read", "");
    return *error_;
  }
  Error&& error() && {
    if (ok()) end_for_misuse("the error of a successful result was read", "");
    return *std::move(error_);
  }

 private:
  std::optional<Error> error_;
};

/// The Error for a failed system call: "what: strerror(errno_value)", with a fitting code.
Error errno_error(int errno_value, std::string_view what);

}  // namespace sw

#define SW_CONCAT_INNER(a, b) a##b
#define SW_CONCAT(a, b) SW_CONCAT_INNER(a, b)

// The names come from __COUNTER__, so that a lambda within an expression can use the macros too.

/// SW_TRY(auto x, expression): binds the value, or returns the error from the enclosing function.
#define SW_TRY(declaration, ...) SW_TRY_INNER(SW_CONCAT(sw_result_, __COUNTER__), declaration, __VA_ARGS__)
#define SW_TRY_INNER(name, declaration, ...)      \
  auto name = (__VA_ARGS__);                      \
  if (!name.ok()) return std::move(name).error(); \
  declaration = *std::move(name)

/// SW_CHECK_OK(expression): for Result<void>; returns the error from the enclosing function.
#define SW_CHECK_OK(...) SW_CHECK_OK_INNER(SW_CONCAT(sw_status_, __COUNTER__), __VA_ARGS__)
#define SW_CHECK_OK_INNER(name, ...)             \
  do {                                           \
    if (auto name = (__VA_ARGS__); !name.ok()) { \
      return std::move(name).error();            \
    }                                            \
  } while (false)
