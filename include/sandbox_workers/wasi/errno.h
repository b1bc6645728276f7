// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// WASI's error numbers, and ErrnoOr<T>: a value or one of them. Inside this room failures that the guest
// shall see travel as Errno; an sw::Error is for what ends the guest's run.

#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>

namespace sw::wasi {

enum class [[nodiscard]] Errno : std::uint16_t{
#define SW_ERRNO(enumerator, name, text) enumerator,
#include "sandbox_workers/wasi/errno.def"
#undef SW_ERRNO
};

/// "ENOENT".
std::string_view errno_name(Errno error);
/// "no such file or directory".
std::string_view errno_text(Errno error);
/// The WASI number for a host errno; kIo for those WASI lacks.
Errno errno_from_host(int host_errno);

template <class T>
class [[nodiscard]] ErrnoOr {
 public:
  ErrnoOr(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit on purpose
  ErrnoOr(Errno error) : state_(std::in_place_index<1>, error) {}         // NOLINT

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  Errno error() const { return ok() ? Errno::kSuccess : *std::get_if<1>(&state_); }

  /// The value; calling it on an error is a bug of the caller.
  T& value() & { return *std::get_if<0>(&state_); }
  const T& value() const& { return *std::get_if<0>(&state_); }
  T&& value() && { return std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Errno> state_;
};

}  // namespace sw::wasi

#define SW_WASI_CONCAT_INNER(a, b) a##b
#define SW_WASI_CONCAT(a, b) SW_WASI_CONCAT_INNER(a, b)

/// SW_WASI_TRY(auto x, expression): binds the value, or returns the Errno from the enclosing function.
#define SW_WASI_TRY(declaration, ...) \
  SW_WASI_TRY_INNER(SW_WASI_CONCAT(sw_wasi_, __LINE__), declaration, __VA_ARGS__)
#define SW_WASI_TRY_INNER(name, declaration, ...) \
  auto name = (__VA_ARGS__);                      \
  if (!name.ok()) return name.error();            \
  declaration = *std::move(name)

/// SW_WASI_CHECK(expression): for a plain Errno; returns it from the enclosing function unless it is kSuccess.
#define SW_WASI_CHECK(...)                                                                           \
  do {                                                                                               \
    if (const ::sw::wasi::Errno sw_errno = (__VA_ARGS__); sw_errno != ::sw::wasi::Errno::kSuccess) { \
      return sw_errno;                                                                               \
    }                                                                                                \
  } while (false)
