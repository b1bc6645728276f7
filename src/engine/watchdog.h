// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ends runs at their limits. One thread looks at all runs in progress every few milliseconds, so a
// run pays nothing for being watched. First it asks: the guest's own way of being interrupted,
// which keeps the interpreter's state. If the run has not ended after the grace time it is stopped
// by force.

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/thread_safety.h"
#include "sandbox_workers/engine/budget.h"
#include "sandbox_workers/engine/run.h"

namespace sw::engine {

/// What can be stopped. Called from the watchdog's thread while the run is in progress.
class Stoppable {
 public:
  virtual ~Stoppable() = default;
  /// Asks; and asks again while the run goes on.
  virtual void soft_stop() = 0;
  /// Ends the run; called again until the run is over.
  virtual void hard_stop() = 0;
};

/// Thread-safe.
class Watchdog {
 public:
  Watchdog();
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Watches the calling thread's run from its construction to `finish` or its destruction.
  class Watch {
   public:
    Watch(Watchdog& watchdog, Stoppable& target, const RunLimits& limits, std::stop_token cancel);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    /// Ends watching. Why the run was asked to stop, if it was.
    StopReason finish();

   private:
    friend class Watchdog;
    using Clock = std::chrono::steady_clock;
    StopReason reason_to_stop(Clock::time_point now) const;

    Watchdog& watchdog_;
    Stoppable& target_;
    const RunLimits limits_;
    std::stop_token cancel_;
    Clock::time_point start_;
    clockid_t cpu_clock_ = 0;
    std::chrono::nanoseconds cpu_at_start_{};
    bool watching_ = true;
    StopReason reason_ SW_GUARDED_BY(watchdog_.mutex_) = StopReason::kNone;
    Clock::time_point first_asked_at_ SW_GUARDED_BY(watchdog_.mutex_);
    Clock::time_point asked_at_ SW_GUARDED_BY(watchdog_.mutex_);
    std::chrono::nanoseconds force_pause_ SW_GUARDED_BY(watchdog_.mutex_){};
    // By cpu_clock_.
    std::chrono::nanoseconds force_again_at_ SW_GUARDED_BY(watchdog_.mutex_){};
  };

 private:
  void loop();
  /// Looks at every watch; true if one is being stopped by force, which wants attention sooner.
  bool look() SW_REQUIRES(mutex_);

  Mutex mutex_;  // held while a target is being stopped
  CondVar changed_;
  std::vector<Watch*> watches_ SW_GUARDED_BY(mutex_);
  // The thread waits without a time-out and must be woken.
  bool sleeping_ SW_GUARDED_BY(mutex_) = false;
  bool ending_ SW_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

/// CPU time of the calling thread.
std::chrono::nanoseconds thread_cpu_time();

}  // namespace sw::engine
