// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks run on a thread of their own, so that whoever asked for them can give up on an engine that
// does not end a run: a hung check would be no answer.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

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

  void deliver(std::unique_lock<std::mutex>& lock,
               const std::function<void(const CheckReport&)>& on_check);
  Error give_up();

  const std::chrono::nanoseconds patience_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<Report> reports_;                       // not delivered yet
  std::string_view check_;                            // in progress
  std::optional<std::chrono::nanoseconds> wall_max_;  // of the run in progress
  Clock::time_point overdue_at_;
  std::optional<Result<void>> result_;
  bool given_up_ = false;
};

}  // namespace sw::testing
