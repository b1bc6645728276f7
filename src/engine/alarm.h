// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One alarm clock, for alarm() in guests.

#include <chrono>
#include <functional>
#include <optional>
#include <thread>

#include "base/thread_safety.h"

namespace sw::engine {

/// Rings once, on a thread of its own, which is started by the first alarm. Thread-safe.
class Alarm {
 public:
  explicit Alarm(std::function<void()> ring) : ring_(std::move(ring)) {}
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  /// Replaces an alarm set before. nullopt: none. One that is ringing just now may still ring.
  void set(std::optional<std::chrono::nanoseconds> after);

 private:
  using Clock = std::chrono::steady_clock;
  void loop();

  const std::function<void()> ring_;
  Mutex mutex_;  // not held while ringing
  CondVar changed_;
  std::optional<Clock::time_point> at_ SW_GUARDED_BY(mutex_);
  bool ending_ SW_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // started under the mutex
};

}  // namespace sw::engine
