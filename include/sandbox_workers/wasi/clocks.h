// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sw::wasi {

/// The host's clocks, in nanoseconds. Tests give their own. Thread-safe.
class Clocks {
 public:
  virtual ~Clocks() = default;
  /// Since 1970.
  virtual std::uint64_t realtime_ns() const = 0;
  /// Since some moment in the past; the clock Cancellation::wait_until sleeps by.
  virtual std::uint64_t monotonic_ns() const = 0;
  /// CPU time of the calling thread.
  virtual std::uint64_t thread_cpu_ns() const = 0;
};

class SystemClocks final : public Clocks {
 public:
  std::uint64_t realtime_ns() const override;
  std::uint64_t monotonic_ns() const override;
  std::uint64_t thread_cpu_ns() const override;
};

}  // namespace sw::wasi
