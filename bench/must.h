// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "sandbox_workers/base/result.h"

namespace sw {

[[noreturn]] inline void fail(const std::string& message) {
  fmt::print(stderr, "sw_bench: {}\n", message);
  std::exit(1);
}

/// What cannot be measured ends the program.
template <class T>
T must(Result<T> result) {
  if (!result.ok()) fail(result.error().message);
  return *std::move(result);
}

inline void must(const Result<void>& result) {
  if (!result.ok()) fail(result.error().message);
}

}  // namespace sw
