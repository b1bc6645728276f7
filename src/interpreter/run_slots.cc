// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "interpreter/run_slots.h"

#include <fmt/format.h>

namespace sw::interpreter {

Result<RunSlots::Slot> RunSlots::take(const std::stop_token& cancel) {
  std::unique_lock lock(mutex_);
  if (free_ == 0 && waiting_ == waiting_max_) {
    return Error{ErrorCode::kLimitExceeded,
                 fmt::format("too busy: {} runs are waiting already", waiting_max_), 0};
  }
  ++waiting_;
  const bool is_free = changed_.wait(lock, cancel, [this] { return free_ != 0; });
  --waiting_;
  if (!is_free || cancel.stop_requested()) {
    // A place that became free meanwhile is for the next in line.
    if (is_free) changed_.notify_one();
    return Error{ErrorCode::kUnavailable, "the call was cancelled", 0};
  }
  --free_;
  return Slot(this);
}

void RunSlots::give_back() {
  {
    const std::lock_guard lock(mutex_);
    ++free_;
  }
  changed_.notify_one();
}

}  // namespace sw::interpreter
