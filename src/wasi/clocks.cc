// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasi/clocks.h"

#include <ctime>

namespace sw::wasi {
namespace {

std::uint64_t read_ns(clockid_t clock) {
  timespec now = {};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

std::uint64_t SystemClocks::realtime_ns() const { return read_ns(CLOCK_REALTIME); }
std::uint64_t SystemClocks::monotonic_ns() const { return read_ns(CLOCK_MONOTONIC); }
std::uint64_t SystemClocks::thread_cpu_ns() const { return read_ns(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace sw::wasi
