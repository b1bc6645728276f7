// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Why an operation on a workspace failed, for those who show it to people: an errno, a message, and the figures
// behind it.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "sandbox_workers/wasi/errno.h"

namespace sw {

struct WorkspaceError {
  wasi::Errno error = wasi::Errno::kIo;
  std::string message;
  /// With kFbig: "maxSize" and "actualSize", in bytes.
  std::map<std::string, std::uint64_t> details = {};

  std::string_view errno_name() const { return wasi::errno_name(error); }
};

/// A value, or why there is none. SW_TRY and SW_CHECK_OK take it as they take a Result.
template <class T>
class [[nodiscard]] WorkspaceOr {
 public:
  WorkspaceOr(T value) : state_(std::in_place_index<0>, std::move(value)) {}               // NOLINT: implicit
  WorkspaceOr(WorkspaceError error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

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
  const WorkspaceError& error() const& { return *std::get_if<1>(&state_); }
  WorkspaceError&& error() && { return std::move(*std::get_if<1>(&state_)); }

 private:
  std::variant<T, WorkspaceError> state_;
};

struct Done {};
/// For operations that give nothing back.
using WorkspaceDone = WorkspaceOr<Done>;

}  // namespace sw
