// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "object/turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace sw::object {
namespace {

TEST(Turns, AKeyIsWorkedWithByOneAtATimeAlsoWithoutTheMutex) {
  Mutex mutex;
  Turns turns;
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  int count = 0;  // guarded by the turn alone
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 200; ++k) {
        MutexLock lock(mutex);
        const Turns::Turn turn(turns, "key", lock);
        const Unlocked unlocked(mutex);
        most = std::max(most.load(), ++inside);
        ++count;
        std::this_thread::yield();
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
  EXPECT_EQ(count, 800);
  EXPECT_TRUE(turns.none());
}

TEST(Turns, OtherKeysAndTheMutexAreFreeMeanwhile) {
  Mutex mutex;
  Turns turns;
  MutexLock lock(mutex);
  const Turns::Turn turn(turns, "a", lock);
  const Unlocked unlocked(mutex);
  std::async(std::launch::async, [&] {
    MutexLock other(mutex);
    const Turns::Turn another(turns, "b", other);
    EXPECT_FALSE(turns.none());
  }).get();
}

TEST(Turns, WaitingForNoneWaitsForAll) {
  Mutex mutex;
  Turns turns;
  std::promise<void> begun;
  std::promise<void> may_end;
  std::atomic<bool> ended = false;
  std::thread worker([&] {
    MutexLock lock(mutex);
    const Turns::Turn first(turns, "a", lock);
    const Turns::Turn second(turns, "b", lock);
    const Unlocked unlocked(mutex);
    begun.set_value();
    may_end.get_future().wait();
    ended = true;
  });
  begun.get_future().wait();
  auto waits = std::async(std::launch::async, [&] {
    MutexLock lock(mutex);
    turns.wait_for_none(lock);
    return ended.load();
  });
  may_end.set_value();
  EXPECT_TRUE(waits.get());
  worker.join();
}

}  // namespace
}  // namespace sw::object
