// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sandbox_workers/wasi/file_system.h"

namespace sw::wasi {

/// Clocks that stand still until a test moves them.
class FixedClocks final : public Clocks {
 public:
  std::uint64_t realtime_ns() const override { return realtime; }
  std::uint64_t monotonic_ns() const override { return monotonic; }
  std::uint64_t thread_cpu_ns() const override { return cpu; }
  std::uint64_t realtime = 1'000'000;
  std::uint64_t monotonic = 500;
  std::uint64_t cpu = 0;
};

}  // namespace sw::wasi
