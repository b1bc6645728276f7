// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sandbox_workers/base/thread_safety.h"

namespace sw::object {

/// Gives a mutex back from its making to its end, however that comes about: whoever has a turn
/// works on, and holds the mutex again when the turn ends.
class SW_SCOPED_CAPABILITY Unlocked {
 public:
  /// `mutex` is held, and outlives it.
  explicit Unlocked(Mutex& mutex) SW_RELEASE(mutex) : mutex_(mutex) { mutex_.unlock(); }
  ~Unlocked() SW_RELEASE() { mutex_.lock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace sw::object
