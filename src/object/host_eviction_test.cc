// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Which objects stay in memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "object/host_fixture.h"

namespace sw::object {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

TEST_F(HostTest, ObjectsBeyondTheLimitAreDroppedLongestIdleFirst) {
  restart({.resident_max = 2});
  ASSERT_EQ(*add("a", 1), 1);
  ASSERT_EQ(*add("b", 1), 1);
  ASSERT_EQ(*add("a", 1), 2);
  ASSERT_EQ(*add("c", 1), 1);
  EXPECT_THAT(log_.lines(), ElementsAre("start a", "start b", "start c", "drop b"));
  EXPECT_EQ(host_->resident(), 2u);
  EXPECT_EQ(*add("b", 1), 2);
}

TEST_F(HostTest, LeasedObjectsStayHoweverManyTheyAre) {
  restart({.resident_max = 1});
  auto a = counter("a");
  auto b = counter("b");
  EXPECT_EQ(get("c"), 0);
  EXPECT_THAT(log_.lines(), ElementsAre("start a", "start b", "start c", "drop c"));
  a.reset();
  EXPECT_EQ(log_.lines().back(), "drop a");
  b.reset();
  EXPECT_EQ(log_.count("drop b"), 0u);
  EXPECT_EQ(host_->resident(), 1u);
}

TEST_F(HostTest, AnIdleObjectIsDroppedAndMadeAgainByTheNextLease) {
  restart({.idle_max = milliseconds(1000)});
  ASSERT_EQ(*add("a", 7), 7);
  clock_.advance(milliseconds(999));
  EXPECT_EQ(log_.count("drop a"), 0u);
  clock_.advance(milliseconds(1));
  EXPECT_EQ(log_.count("drop a"), 1u);
  EXPECT_EQ(host_->resident(), 0u);
  EXPECT_EQ(get("a"), 7);
}

TEST_F(HostTest, ALeaseIsUseHoweverLongItIsHeld) {
  restart({.idle_max = milliseconds(1000)});
  auto held = counter("a");
  ASSERT_EQ(*add("b", 1), 1);
  clock_.advance(milliseconds(600));
  ASSERT_EQ(*add("b", 1), 2);
  clock_.advance(milliseconds(600));
  EXPECT_THAT(log_.lines(), ElementsAre("start a", "start b"));
  held.reset();
  clock_.advance(milliseconds(400));
  EXPECT_EQ(log_.lines().back(), "drop b");
  clock_.advance(milliseconds(600));
  EXPECT_EQ(log_.lines().back(), "drop a");
}

TEST_F(HostTest, TenThousandObjectsNeedMemoryForAFew) {
  restart({.resident_max = 50});
  constexpr int kObjects = 10'000;
  for (int i = 0; i < kObjects; ++i) ASSERT_EQ(*add(std::to_string(i), i), i);
  EXPECT_EQ(host_->resident(), 50u);
  EXPECT_EQ(log_.lines().size(), 2u * kObjects - 50u) << "some were not dropped";
  EXPECT_EQ(get("1234"), 1234);
}

TEST_F(HostTest, GettingAnObjectRacesWithItsEviction) {
  restart({.resident_max = 1});
  constexpr int kThreads = 4;
  constexpr int kRounds = 500;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i] {
      for (int k = 0; k < kRounds; ++k) EXPECT_TRUE(add(std::to_string((i + k) % 3), 1).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(get("0") + get("1") + get("2"), kThreads * kRounds);
  EXPECT_LE(host_->resident(), 1u);
}

TEST_F(HostTest, ManyThreadsGetLetGoAndLoseOneObject) {
  constexpr int kThreads = 4;
  std::atomic<int> stored = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 400; ++k) {
        if (i == 0 && k % 20 == 0) {  // another host takes it over
          const auto other = *storage_->open({"counter", "a"}, {});
          continue;
        }
        const auto first = counter("a");
        const auto second = counter("a");
        const auto added = (k % 2 == 0 ? first : second)->add(1);
        if (added.ok()) ++stored;
        EXPECT_TRUE(added.ok() || added.error().code == ErrorCode::kConflict);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  while (!add("a", 0).ok()) {
  }
  EXPECT_EQ(get("a"), stored);
  EXPECT_EQ(host_->resident(), 1u);
  host_.reset();
  EXPECT_EQ(log_.count("start a"), log_.count("drop a"));
}

}  // namespace
}  // namespace sw::object
