// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks run on a thread of their own, so that whoever asked for them can give up on an engine that
// does not end a run: a hung check would be no answer.

#include <chrono>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/thread_safety.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/testing/conformance.h"

namespace sw::testing {

/// What the thread of the checks and whoever waits for it share. Threads: any.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  /// A run may take `patience` longer than it is allowed to.
  explicit Progress(std::chrono::nanoseconds patience) : patience_(patience) {}

  // --- the thread of the checks

  /// False: nobody waits for them any more.
  bool begin_check(std::string_view name);
  void end_check(bool skipped, std::optional<Error> violation);
  void begin_run(std::chrono::nanoseconds wall_max);
  void end_run();
  void finish(Result<void> result);

  // --- whoever waits

  /// Passes reports on until the checks have ended or a run is overdue, which is a violation.
  Result<void> wait(const std::function<void(const CheckReport&)>& on_check);
  bool given_up() const;

 private:
  struct Report {
    std::string_view name;
    bool skipped = false;
    std::optional<Error> violation = {};
  };

  /// Gives the mutex up while `on_check` runs.
  void deliver(const std::function<void(const CheckReport&)>& on_check) SW_REQUIRES(mutex_);
  Error give_up() SW_REQUIRES(mutex_);

  const std::chrono::nanoseconds patience_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Report> reports_ SW_GUARDED_BY(mutex_);  // not delivered yet
  std::string_view check_ SW_GUARDED_BY(mutex_);       // in progress
  // Of the run in progress.
  std::optional<std::chrono::nanoseconds> wall_max_ SW_GUARDED_BY(mutex_);
  Clock::time_point overdue_at_ SW_GUARDED_BY(mutex_);
  std::optional<Result<void>> result_ SW_GUARDED_BY(mutex_);
  bool given_up_ SW_GUARDED_BY(mutex_) = false;
};

}  // namespace sw::testing
