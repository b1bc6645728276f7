// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "interpreter/run_slots.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

namespace sw::interpreter {
namespace {

TEST(RunSlots, NoMoreThanTheLimitRunAtOnceAndEachGetsItsTurn) {
  RunSlots slots(2, 100);
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  std::atomic<int> done = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 20; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        const auto slot = slots.take({});
        ASSERT_TRUE(slot.ok());
        const int now = ++running;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::yield();
        --running;
        ++done;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(done, 1000);
  EXPECT_LE(most, 2);
}

TEST(RunSlots, AFullQueueRefusesAtOnce) {
  RunSlots slots(1, 0);
  std::optional<Result<RunSlots::Slot>> taken = slots.take({});
  ASSERT_TRUE(taken->ok());
  EXPECT_EQ(slots.take({}).error().code, ErrorCode::kLimitExceeded);
  taken.reset();
  EXPECT_TRUE(slots.take({}).ok());
}

TEST(RunSlots, ACancelledCallLeavesTheQueueAndTakesNoPlace) {
  RunSlots slots(1, 1);
  std::optional<Result<RunSlots::Slot>> taken = slots.take({});
  std::stop_source stop;
  std::optional<ErrorCode> code;
  std::jthread waiting([&] {
    const auto slot = slots.take(stop.get_token());
    if (!slot.ok()) code = slot.error().code;
  });
  stop.request_stop();
  waiting.join();
  EXPECT_EQ(code, ErrorCode::kUnavailable);
  taken.reset();
  EXPECT_EQ(slots.take(stop.get_token()).error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(slots.take({}).ok());
}

}  // namespace
}  // namespace sw::interpreter
