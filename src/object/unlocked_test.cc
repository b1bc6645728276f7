// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "object/unlocked.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

namespace sw::object {
namespace {

/// As another thread sees it.
bool is_free(Mutex& mutex) {
  bool taken = false;
  std::thread([&] {
    if (!mutex.try_lock()) return;
    taken = true;
    mutex.unlock();
  }).join();
  return taken;
}

TEST(Unlocked, GivesTheMutexBackUntilItEnds) {
  Mutex mutex;
  const MutexLock lock(mutex);
  {
    const Unlocked unlocked(mutex);
    EXPECT_TRUE(is_free(mutex));
  }
  EXPECT_FALSE(is_free(mutex));
}

TEST(Unlocked, TakesItAgainWhenAnExceptionEndsIt) {
  Mutex mutex;
  const MutexLock lock(mutex);
  try {
    const Unlocked unlocked(mutex);
    throw std::runtime_error("thrown while the mutex is free");
  } catch (const std::runtime_error&) {
    EXPECT_FALSE(is_free(mutex));
  }
}

}  // namespace
}  // namespace sw::object
