// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ValueOr<T, E>: a value, or why there is none, where that is more than an Error can say. SW_TRY and SW_CHECK_OK
// take it as they take a Result.

#include <utility>
#include <variant>

namespace sw {

/// For operations that give nothing back.
struct Done {};

template <class T, class E>
class [[nodiscard]] ValueOr {
 public:
  ValueOr(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit on purpose
  ValueOr(E error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }

  /// The value; calling it on an error is a bug of the caller.
  T& value() & { return *std::get_if<0>(&state_); }
  const T& value() const& { return *std::get_if<0>(&state_); }
  T&& value() && { return std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// The error; calling it on a value is a bug of the caller.
  const E& error() const& { return *std::get_if<1>(&state_); }
  E&& error() && { return std::move(*std::get_if<1>(&state_)); }

 private:
  std::variant<T, E> state_;
};

}  // namespace sw
