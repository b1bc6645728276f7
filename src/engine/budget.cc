// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/engine/budget.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "engine/watchdog.h"
#include "sandbox_workers/engine/engine.h"

namespace sw::engine {

namespace {

std::string seconds(std::chrono::nanoseconds time) {
  return fmt::format("{:g} s", std::chrono::duration<double>(time).count());
}

BudgetOptions without_useless_grace(BudgetOptions options) {
  if (!options.soft_stop) options.limits.grace = std::chrono::nanoseconds::zero();
  return options;
}

class WatchedBudget final : public Budget, private Stoppable {
 public:
  WatchedBudget(Watchdog& watchdog, wasm::Instance& instance, BudgetOptions options)
      : instance_(instance),
        options_(without_useless_grace(std::move(options))),
        wall_begin_(std::chrono::steady_clock::now()),
        cpu_begin_(thread_cpu_time()),
        watch_(watchdog, *this, options_.limits, options_.cancel) {}

  BudgetResult finish() override {
    if (!result_) {
      result_ = BudgetResult{.reason = watch_.finish(),
                             .wall = std::chrono::steady_clock::now() - wall_begin_,
                             .cpu = thread_cpu_time() - cpu_begin_};
    }
    return *result_;
  }

 private:
  void soft_stop() override {
    if (!options_.soft_stop) return hard_stop();
    options_.soft_stop();
    // A guest that sleeps in the host must wake up to notice.
    if (options_.cancellation != nullptr) options_.cancellation->wake();
  }
  void hard_stop() override {
    if (options_.cancellation != nullptr) options_.cancellation->cancel();
    instance_.stop();
  }

  wasm::Instance& instance_;
  const BudgetOptions options_;
  const std::chrono::steady_clock::time_point wall_begin_;
  const std::chrono::nanoseconds cpu_begin_;
  std::optional<BudgetResult> result_;
  Watchdog::Watch watch_;  // last: it calls the above as soon as it is made
};

}  // namespace

std::unique_ptr<Budget> budget(Watchdog& watchdog, wasm::Instance& instance,
                               BudgetOptions options) {
  return std::make_unique<WatchedBudget>(watchdog, instance, std::move(options));
}

std::string stop_message(StopReason reason, const RunLimits& limits) {
  switch (reason) {
    case StopReason::kWallLimit:
      return fmt::format("time limit of {} reached", seconds(limits.wall_max));
    case StopReason::kCpuLimit:
      return fmt::format("CPU time limit of {} reached", seconds(limits.cpu_max));
    case StopReason::kCancelled: return "cancelled";
    case StopReason::kNone: break;
  }
  return "stopped";
}

Error stop_error(StopReason reason, const RunLimits& limits) {
  return ExecutionLimitError(stop_message(reason, limits));
}

}  // namespace sw::engine
