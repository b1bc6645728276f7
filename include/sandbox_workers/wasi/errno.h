// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// WASI's error numbers, and ErrnoOr<T>: a value or one of them. Inside this room failures that the
// guest shall see travel as Errno; an sw::Error is for what ends the guest's run.

#include <cstdint>
#include <string_view>

#include "sandbox_workers/base/result.h"

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

/// A value, or the error that the guest is told.
template <class T>
using ErrnoOr = Result<T, Errno>;

}  // namespace sw::wasi

#define SW_WASI_CONCAT_INNER(a, b) a##b
#define SW_WASI_CONCAT(a, b) SW_WASI_CONCAT_INNER(a, b)

/// SW_WASI_TRY(auto x, expression): binds the value, or returns the Errno from the enclosing
/// function.
#define SW_WASI_TRY(declaration, ...) \
  SW_WASI_TRY_INNER(SW_WASI_CONCAT(sw_wasi_, __LINE__), declaration, __VA_ARGS__)
#define SW_WASI_TRY_INNER(name, declaration, ...) \
  auto name = (__VA_ARGS__);                      \
  if (!name.ok()) return name.error();            \
  declaration = *std::move(name)

/// SW_WASI_CHECK(expression): for a plain Errno; returns it from the enclosing function unless it
/// is kSuccess.
#define SW_WASI_CHECK(...)                                \
  do {                                                    \
    if (const ::sw::wasi::Errno sw_errno = (__VA_ARGS__); \
        sw_errno != ::sw::wasi::Errno::kSuccess) {        \
      return sw_errno;                                    \
    }                                                     \
  } while (false)
