// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "base/thread_safety.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

namespace sw {
namespace {

using std::chrono_literals::operator""ms;

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

TEST(MutexLock, HoldsTheMutexToItsEnd) {
  Mutex mutex;
  {
    const MutexLock lock(mutex);
    EXPECT_FALSE(is_free(mutex));
  }
  EXPECT_TRUE(is_free(mutex));
}

TEST(MutexLock, GivesItBackBetweenUnlockAndLock) {
  Mutex mutex;
  MutexLock lock(mutex);
  lock.unlock();
  EXPECT_TRUE(is_free(mutex));
  lock.lock();
  EXPECT_FALSE(is_free(mutex));
}

TEST(MutexLock, MayEndUnlocked) {
  Mutex mutex;
  {
    MutexLock lock(mutex);
    lock.unlock();
  }
  EXPECT_TRUE(is_free(mutex));
}

class Counter {
 public:
  void add() {
    const MutexLock lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  void wait_for(int count) {
    MutexLock lock(mutex_);
    while (count_ < count) changed_.wait(lock);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ SW_GUARDED_BY(mutex_) = 0;
};

TEST(CondVar, WakesWhoeverWaits) {
  Counter counter;
  std::thread waiting([&] { counter.wait_for(2); });
  counter.add();
  counter.add();
  waiting.join();
}

TEST(CondVar, GivesUpWhenTheTimeHasCome) {
  Mutex mutex;
  CondVar never;
  MutexLock lock(mutex);
  while (never.wait_for(lock, 1ms)) {
  }
  EXPECT_FALSE(never.wait_until(lock, std::chrono::steady_clock::now() - 1ms));
  EXPECT_FALSE(is_free(mutex)) << "the wait did not take the lock back";
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
}  // namespace sw
