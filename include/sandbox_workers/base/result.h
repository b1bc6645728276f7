// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Result<T>: the value of an operation that can be expected to fail, or why there is none.
// Exceptions stay inside a room; between rooms failures travel as Results.

#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "sandbox_workers/base/error.h"

namespace sw {

/// Reading the value of a failure, or the error of a success, is a bug of the caller: says so and
/// ends the program, in every build.
[[noreturn]] void end_for_misuse(std::string_view what, std::string_view message);

/// Either a T or an E. Never empty. E is Error but where guests are told an errno: an enum with a
/// kSuccess, which is then the error of a result that has a value.
template <class T, class E = Error>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit on purpose
  Result(E error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  /// Ends the program if there is none.
  T& value() & { return *checked_value(this); }
  const T& value() const& { return *checked_value(this); }
  T&& value() && { return std::move(*checked_value(this)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// Ends the program if there is none.
  const E& error() const& requires(!requires { E::kSuccess; }) { return *checked_error(this); }
  E&& error() && requires(!requires { E::kSuccess; }) { return std::move(*checked_error(this)); }
  E error() const& requires(requires { E::kSuccess; }) {
    return ok() ? E::kSuccess : *std::get_if<1>(&state_);
  }

 private:
  template <class Self>
  static auto* checked_value(Self* self) {
    if (auto* const value = std::get_if<0>(&self->state_)) return value;
    if constexpr (requires(const E& error) { std::string_view(error.message); }) {
      end_for_misuse("the value of a failed result was read",
                     std::get_if<1>(&self->state_)->message);
    } else {
      end_for_misuse("the value of a failed result was read", "");
    }
  }
  template <class Self>
  static auto* checked_error(Self* self) {
    if (auto* const error = std::get_if<1>(&self->state_)) return error;
    end_for_misuse("the error of a successful result was read", "");
  }

  std::variant<T, E> state_;
};

template <>
class [[nodiscard]] Result<void, Error> {
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

}  // namespace sw

#define SW_CONCAT_INNER(a, b) a##b
#define SW_CONCAT(a, b) SW_CONCAT_INNER(a, b)

// The names come from __COUNTER__, so that a lambda within an expression can use the macros too.

/// SW_TRY(auto x, expression): binds the value, or returns the error from the enclosing function.
#define SW_TRY(declaration, ...) \
  SW_TRY_INNER(SW_CONCAT(sw_result_, __COUNTER__), declaration, __VA_ARGS__)
#define SW_TRY_INNER(name, declaration, ...)      \
  auto name = (__VA_ARGS__);                      \
  if (!name.ok()) return std::move(name).error(); \
  declaration = *std::move(name)

/// SW_CHECK_OK(expression): returns the error from the enclosing function if there is one.
#define SW_CHECK_OK(...) SW_CHECK_OK_INNER(SW_CONCAT(sw_status_, __COUNTER__), __VA_ARGS__)
#define SW_CHECK_OK_INNER(name, ...)             \
  do {                                           \
    if (auto name = (__VA_ARGS__); !name.ok()) { \
      return std::move(name).error();            \
    }                                            \
  } while (false)
