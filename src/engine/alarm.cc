// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/alarm.h"

namespace sw::engine {

Alarm::~Alarm() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Alarm::set(std::optional<std::chrono::nanoseconds> after) {
  {
    const MutexLock lock(mutex_);
    at_ = after ? std::optional(Clock::now() + *after) : std::nullopt;
    if (at_ && !thread_.joinable()) thread_ = std::thread([this] { loop(); });
  }
  changed_.notify_one();
}

void Alarm::loop() {
  MutexLock lock(mutex_);
  while (!ending_) {
    if (!at_) {
      changed_.wait(lock);
    } else if (Clock::now() < *at_) {
      // A copy: at_ may change while this waits.
      const Clock::time_point until = *at_;
      changed_.wait_until(lock, until);
    } else {
      at_.reset();
      lock.unlock();
      ring_();
      lock.lock();
    }
  }
}

}  // namespace sw::engine
