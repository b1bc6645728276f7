// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "interpreter/residency_pool.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace sw::interpreter {
namespace {

/// An instance that is nothing but large.
std::unique_ptr<Resident> resident(std::uint64_t bytes) {
  auto made = std::make_unique<Resident>();
  made->bytes = bytes;
  return made;
}

const int kOne = 0;
const int kOther = 0;
const ResidencyPool::Owner kOwner = &kOne;
const ResidencyPool::Owner kAnother = &kOther;

TEST(ResidencyPool, GivesBackWhatWasPutAndOnlyOnce) {
  ResidencyPool pool;
  auto put = resident(10);
  const Resident* const same = put.get();
  pool.put(kOwner, "a", std::move(put));
  EXPECT_TRUE(pool.has(kOwner, "a"));
  EXPECT_EQ(pool.stats().bytes, 10u);
  EXPECT_EQ(pool.take(kOwner, "a").get(), same);
  EXPECT_EQ(pool.take(kOwner, "a"), nullptr);
  EXPECT_EQ(pool.stats().instances, 0u);
  EXPECT_EQ(pool.stats().bytes, 0u);
  EXPECT_EQ(pool.stats().evicted, 0u);
}

TEST(ResidencyPool, OwnersMayHaveContextsOfOneName) {
  ResidencyPool pool;
  pool.put(kOwner, "a", resident(1));
  EXPECT_FALSE(pool.has(kAnother, "a"));
  EXPECT_EQ(pool.take(kAnother, "a"), nullptr);
  pool.put(kAnother, "a", resident(2));
  EXPECT_EQ(pool.take(kAnother, "a")->bytes, 2u);
  EXPECT_EQ(pool.take(kOwner, "a")->bytes, 1u);
}

TEST(ResidencyPool, TooManyInstancesPushOutThoseUsedLongestAgo) {
  ResidencyPool pool({.instances_max = 2});
  pool.put(kOwner, "a", resident(1));
  pool.put(kOwner, "b", resident(1));
  pool.put(kOwner, "a", pool.take(kOwner, "a"));  // a run
  pool.put(kAnother, "c", resident(1));
  EXPECT_FALSE(pool.has(kOwner, "b"));
  EXPECT_TRUE(pool.has(kOwner, "a"));
  EXPECT_TRUE(pool.has(kAnother, "c"));
  EXPECT_EQ(pool.stats().evicted, 1u);
}

TEST(ResidencyPool, TooManyBytesPushOutAsManyAsItTakes) {
  ResidencyPool pool({.bytes_max = 100});
  for (const char* context : {"a", "b", "c"}) pool.put(kOwner, context, resident(30));
  pool.put(kOwner, "d", resident(70));
  EXPECT_FALSE(pool.has(kOwner, "a"));
  EXPECT_FALSE(pool.has(kOwner, "b"));
  EXPECT_TRUE(pool.has(kOwner, "c"));
  EXPECT_TRUE(pool.has(kOwner, "d"));
  EXPECT_EQ(pool.stats().bytes, 100u);
}

TEST(ResidencyPool, AnInstanceThatAloneIsTooLargeDoesNotStay) {
  ResidencyPool pool({.bytes_max = 100});
  pool.put(kOwner, "a", resident(101));
  EXPECT_FALSE(pool.has(kOwner, "a"));
  EXPECT_EQ(pool.stats().bytes, 0u);
  EXPECT_EQ(pool.stats().evicted, 1u);
}

TEST(ResidencyPool, ClearingTakesAnOwnersOnlyAndIsNoEviction) {
  ResidencyPool pool;
  pool.put(kOwner, "a", resident(1));
  pool.put(kAnother, "a", resident(2));
  pool.put(kOwner, "b", resident(4));
  pool.clear(kOwner);
  EXPECT_FALSE(pool.has(kOwner, "a"));
  EXPECT_FALSE(pool.has(kOwner, "b"));
  EXPECT_TRUE(pool.has(kAnother, "a"));
  EXPECT_EQ(pool.stats().bytes, 2u);
  EXPECT_EQ(pool.stats().evicted, 0u);
}

TEST(ResidencyPool, CountsRightWhenManyThreadsUseIt) {
  ResidencyPool pool({.bytes_max = 20, .instances_max = 5});
  std::vector<std::thread> threads;
  const std::vector<int> owners(4);
  for (const int& owner : owners) {
    threads.emplace_back([&pool, &owner] {
      for (int round = 0; round < 500; ++round) {
        const std::string context = std::to_string(round % 3);
        auto taken = pool.take(&owner, context);
        pool.put(&owner, context, taken ? std::move(taken) : resident(5));
        EXPECT_LE(pool.stats().bytes, 20u);
      }
      pool.clear(&owner);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.stats().instances, 0u);
  EXPECT_EQ(pool.stats().bytes, 0u);
}

}  // namespace
}  // namespace sw::interpreter
