// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What time it is, and being called at a time: one interface, so that a test decides when time
// passes.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "base/thread_safety.h"
#include "storage/storage.h"

namespace sw::object {

using storage::Time;

/// Calls its function at the time it is set to, or soon after; once for each setting.
/// Threads: `set` from any, but not from two at once. The function runs on a thread of the clock,
/// never within `set`; once the destructor returns, it does not run any more.
class Timer {
 public:
  virtual ~Timer() = default;
  /// Replaces an earlier setting; nullopt: not at all.
  virtual void set(std::optional<Time> time) = 0;
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() = 0;
  /// The clock has to outlive the timer.
  virtual std::unique_ptr<Timer> make_timer(std::function<void()> fire) = 0;
};

/// The time of day. Owns a thread for its timers.
std::unique_ptr<Clock> make_system_clock();

/// A clock that stands still until it is told otherwise. Timers fire within `advance`.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Time now) : now_(now) {}

  Time now() override;
  std::unique_ptr<Timer> make_timer(std::function<void()> fire) override;

  void advance(std::chrono::milliseconds by);
  /// The earliest time that a timer is set to.
  std::optional<Time> next();

 private:
  class ManualTimer;

  Mutex mutex_;
  Time now_ SW_GUARDED_BY(mutex_);
  std::multimap<Time, ManualTimer*> set_ SW_GUARDED_BY(mutex_);
  // Held while a function runs: a destructor waits for it, unless it is called by that function.
  std::recursive_mutex firing_;
};

}  // namespace sw::object
