// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/alarm.h"

#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>

namespace sw::engine {
namespace {

using namespace std::chrono_literals;

struct Bell {
  std::atomic<int> rings = 0;
  std::counting_semaphore<> rang{0};
  Alarm alarm{[this] {
    ++rings;
    rang.release();
  }};
};

TEST(Alarm, RingsOnceAfterItsTime) {
  Bell bell;
  const auto begin = std::chrono::steady_clock::now();
  bell.alarm.set(20ms);
  ASSERT_TRUE(bell.rang.try_acquire_for(30s));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
  EXPECT_FALSE(bell.rang.try_acquire_for(60ms));
}

TEST(Alarm, IsReplacedByTheNextOne) {
  Bell bell;
  bell.alarm.set(1h);
  bell.alarm.set(1ms);
  ASSERT_TRUE(bell.rang.try_acquire_for(30s));
  bell.alarm.set(1ms);
  ASSERT_TRUE(bell.rang.try_acquire_for(30s));
  EXPECT_EQ(bell.rings, 2);
}

TEST(Alarm, CanBeTakenBack) {
  Bell bell;
  const auto begin = std::chrono::steady_clock::now();
  bell.alarm.set(200ms);
  bell.alarm.set(std::nullopt);
  // else it may have rung before
  const bool in_time = std::chrono::steady_clock::now() - begin < 200ms;
  const bool rang = bell.rang.try_acquire_for(400ms);
  EXPECT_FALSE(in_time && rang);
}

TEST(Alarm, MayBeDestroyedWhileItIsSet) {
  Bell bell;
  bell.alarm.set(1h);
  SUCCEED();
}

}  // namespace
}  // namespace sw::engine
