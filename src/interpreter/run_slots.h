// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stop_token>
#include <utility>

#include "sandbox_workers/base/result.h"

namespace sw::interpreter {

/// Bounds how many runs happen at once, and how many wait for their turn. Threads: any.
class RunSlots {
 public:
  RunSlots(std::size_t runs_max, std::size_t waiting_max)
      : free_(runs_max), waiting_max_(waiting_max) {}
  RunSlots(const RunSlots&) = delete;
  RunSlots& operator=(const RunSlots&) = delete;

  /// A place for one run, given back when it goes. It must not outlive its RunSlots.
  class Slot {
   public:
    explicit Slot(RunSlots* slots) : slots_(slots) {}
    Slot(Slot&& other) noexcept : slots_(std::exchange(other.slots_, nullptr)) {}
    Slot& operator=(Slot&&) = delete;
    ~Slot() {
      if (slots_) slots_->give_back();
    }

   private:
    RunSlots* slots_;
  };

  /// Waits for a place. Errors: kLimitExceeded at once if `waiting_max` wait already; kUnavailable
  /// once `cancel` is requested.
  Result<Slot> take(const std::stop_token& cancel);

 private:
  void give_back();

  std::mutex mutex_;
  std::condition_variable_any changed_;
  // Guarded by the mutex.
  std::size_t free_;
  std::size_t waiting_ = 0;
  const std::size_t waiting_max_;
};

}  // namespace sw::interpreter
