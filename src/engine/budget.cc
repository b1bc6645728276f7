// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/engine/budget.h"

#include <fmt/format.h>

#include <utility>

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

}  // namespace

Budget::Budget(Watchdog& watchdog, wasm::Instance& instance, BudgetOptions options)
    : instance_(instance),
      options_(without_useless_grace(std::move(options))),
      wall_begin_(std::chrono::steady_clock::now()),
      cpu_begin_(thread_cpu_time()),
      watch_(watchdog, *this, options_.limits, options_.cancel) {}

Spent Budget::finish() {
  if (!spent_) {
    spent_ = Spent{.reason = watch_.finish(),
                   .wall = std::chrono::steady_clock::now() - wall_begin_,
                   .cpu = thread_cpu_time() - cpu_begin_};
  }
  return *spent_;
}

void Budget::soft_stop() {
  if (!options_.soft_stop) return;
  options_.soft_stop();
  // A guest that sleeps in the host must wake up to notice.
  if (options_.cancellation != nullptr) options_.cancellation->wake();
}

void Budget::hard_stop() {
  if (options_.cancellation != nullptr) options_.cancellation->cancel();
  instance_.stop();
}

std::unique_ptr<Budget> budget(Watchdog& watchdog, wasm::Instance& instance,
                               BudgetOptions options) {
  return std::make_unique<Budget>(watchdog, instance, std::move(options));
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
