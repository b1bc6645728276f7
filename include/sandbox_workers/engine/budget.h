// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The limits of one run, for an engine that calls a Wasm guest itself:
//
//   {
//     const auto meter = budget(machine.watchdog(), instance, {.limits = request.limits, .cancel =
//     request.cancel}); result = instance.call(run, …); spent = meter->finish();
//   }
//   if (spent.reason != StopReason::kNone) …   // stop_error(spent.reason, request.limits)
//
// At the deadline the guest is asked to stop, if it can be asked, which keeps its state; after
// RunLimits::grace it is ended by force, which costs the instance.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "sandbox_workers/base/cancellation.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/run.h"
#include "sandbox_workers/engine/watchdog.h"
#include "sandbox_workers/wasm/instance.h"

namespace sw::engine {

/// What a run may take, and how it is ended.
struct BudgetOptions {
  RunLimits limits = {};
  /// Ends the run as a deadline does.
  std::stop_token cancel = {};
  /// Asks the guest to stop: sets a flag that its interpreter looks at. Called from another thread,
  /// perhaps several times; must not block. Empty: it cannot be asked, and there is no grace
  /// either.
  std::function<void()> soft_stop = {};
  /// What the guest's sleeps wait with (wasi::RunOptions::cancellation); woken by a soft stop,
  /// ended by a hard one.
  Cancellation* cancellation = nullptr;
};

/// What it took, and whether it was ended.
struct Spent {
  StopReason reason = StopReason::kNone;  ///< why the run was asked to stop, if it was
  std::chrono::nanoseconds wall{};
  std::chrono::nanoseconds cpu{};  ///< of the thread that made the budget
};

/// Watches from its making until `finish` or its end. Threads: the run's.
class Budget final : private Stoppable {
 public:
  Budget(Watchdog& watchdog, wasm::Instance& instance, BudgetOptions options);
  ~Budget() override = default;

  /// Ends watching; nothing is stopped any more once it returns. The first call's answer is kept.
  Spent finish();

 private:
  void soft_stop() override;
  void hard_stop() override;

  wasm::Instance& instance_;
  const BudgetOptions options_;
  const std::chrono::steady_clock::time_point wall_begin_;
  const std::chrono::nanoseconds cpu_begin_;
  std::optional<Spent> spent_;
  Watchdog::Watch watch_;  // last: it calls the above as soon as it is made
};

/// `watchdog` and `instance` outlive the budget; so does what the options point to.
std::unique_ptr<Budget> budget(Watchdog& watchdog, wasm::Instance& instance, BudgetOptions options);

/// What is said of a run that was stopped: "time limit of 0.2 s reached".
std::string stop_message(StopReason reason, const RunLimits& limits);
/// The same as an ExecutionLimitError.
Error stop_error(StopReason reason, const RunLimits& limits);

}  // namespace sw::engine
