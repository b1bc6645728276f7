// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The limits of one run, for whoever calls a Wasm guest:
//
//   const auto meter = budget(machine.watchdog(), instance,
//                             {.limits = run.limits, .cancel = run.cancel});
//   auto result = instance.call(function, …);
//   const BudgetResult spent = meter->finish();
//   if (spent.reason != StopReason::kNone) return stop_error(spent.reason, run.limits);
//
// At the deadline the guest is asked to stop, if it can be asked, which keeps its state; after
// RunLimits::grace it is ended by force, which costs the instance.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "sandbox_workers/base/cancellation.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/run.h"
#include "sandbox_workers/wasm/instance.h"

namespace sw::engine {

class Watchdog;

/// Why a run is asked to stop.
enum class StopReason : std::uint8_t { kNone, kWallLimit, kCpuLimit, kCancelled };

/// What a run may take, and how it is ended.
struct BudgetOptions {
  RunLimits limits = {};
  /// Ends the run as a deadline does.
  std::stop_token cancel = {};
  /// Asks the guest to stop: sets a flag that its interpreter looks at. Called from another thread,
  /// perhaps several times; must not block. Empty: it cannot be asked, and is ended by force at
  /// once.
  std::function<void()> soft_stop = {};
  /// What the guest's sleeps wait with (wasi::RunOptions::cancellation); woken by a soft stop,
  /// ended by a hard one.
  Cancellation* cancellation = nullptr;
};

/// What a run took, and whether it was ended.
struct BudgetResult {
  StopReason reason = StopReason::kNone;  ///< why the run was asked to stop, if it was
  std::chrono::nanoseconds wall{};
  std::chrono::nanoseconds cpu{};  ///< of the thread that made the budget
};

/// Watches from its making until `finish` or its end. Threads: the run's.
class Budget {
 public:
  virtual ~Budget() = default;

  /// Ends watching; nothing is stopped any more once it returns. The first call's answer is kept.
  virtual BudgetResult finish() = 0;
};

/// `watchdog` and `instance` outlive the budget; so does what the options point to.
std::unique_ptr<Budget> budget(Watchdog& watchdog, wasm::Instance& instance, BudgetOptions options);

/// What is said of a run that was stopped: "time limit of 0.2 s reached".
std::string stop_message(StopReason reason, const RunLimits& limits);
/// The same as an ExecutionLimitError.
Error stop_error(StopReason reason, const RunLimits& limits);

}  // namespace sw::engine
