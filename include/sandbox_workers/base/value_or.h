// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ValueOr<T, E>: a value, or why there is none. Result<T> is one whose reason is an Error; others say more than an
// Error can. SW_TRY and SW_CHECK_OK take all of them.

#include <string_view>
#include <utility>
#include <variant>

namespace sw {

/// For operations that give nothing back.
struct Done {};

/// Reading the value of a failure, or the error of a success, is a bug of the caller: says so and ends the
/// program, in every build.
[[noreturn]] void end_for_misuse(std::string_view what, std::string_view message);

template <class T, class E>
class [[nodiscard]] ValueOr {
 public:
  ValueOr(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit on purpose
  ValueOr(E error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }

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
  const E& error() const& { return *checked_error(this); }
  E&& error() && { return std::move(*checked_error(this)); }

 private:
  template <class Self>
  static auto* checked_value(Self* self) {
    if (auto* const value = std::get_if<0>(&self->state_)) return value;
    if constexpr (requires(const E& error) { std::string_view(error.message); }) {
      end_for_misuse("the value of a failed result was read", std::get_if<1>(&self->state_)->message);
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

}  // namespace sw
