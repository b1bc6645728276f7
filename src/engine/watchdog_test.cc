// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/watchdog.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>

namespace sw::engine {
namespace {

using namespace std::chrono_literals;

class Recorder final : public Stoppable {
 public:
  void soft_stop() override { ++soft; }
  void hard_stop() override { ++hard; }
  std::atomic<int> soft = 0;
  std::atomic<int> hard = 0;
};

/// Waits for a condition that the watchdog brings about; bounded.
template <class Condition>
bool eventually(const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

/// The same for what comes with this thread's CPU time, of which one that yields hardly gets any
/// beside busy processes.
template <class Condition>
bool working_until(const Condition& condition) {
  const auto begin = thread_cpu_time();
  while (!condition() && thread_cpu_time() - begin < 20s) {
  }
  return condition();
}

TEST(WatchdogTest, AsksOnceThenForces) {
  Watchdog watchdog;
  Recorder target;
  Watchdog::Watch watch(watchdog, target, RunLimits{.wall_max = 1ms, .grace = 1ms}, {});
  EXPECT_TRUE(working_until([&] { return target.hard > 2; }));
  EXPECT_EQ(watch.finish(), StopReason::kWallLimit);
  EXPECT_EQ(target.soft, 1);
}

TEST(WatchdogTest, ForcesLessAndLessOftenSoThatALongCopyInTheHostCanEnd) {
  Watchdog watchdog;
  Recorder target;
  const auto begin = thread_cpu_time();
  Watchdog::Watch watch(watchdog, target, RunLimits{.wall_max = 1ms, .grace = 1ms}, {});
  // Pauses of 1, 2, 4, … 64 ms of its CPU time lie between the first time and the eighth.
  EXPECT_TRUE(working_until([&] { return target.hard >= 8; }));
  EXPECT_GE(thread_cpu_time() - begin, 127ms);
}

TEST(WatchdogTest, AsksAgainWhileTheRunGoesOn) {
  Watchdog watchdog;
  Recorder target;
  Watchdog::Watch watch(watchdog, target, RunLimits{.wall_max = 1ms, .grace = 1h}, {});
  EXPECT_TRUE(eventually([&] { return target.soft > 2; }));
  EXPECT_EQ(target.hard, 0);
}

TEST(WatchdogTest, LeavesARunWithinItsLimitsAlone) {
  Watchdog watchdog;
  Recorder hurried;
  Recorder calm;
  Watchdog::Watch first(watchdog, hurried, RunLimits{.wall_max = 1ms}, {});
  Watchdog::Watch second(watchdog, calm, RunLimits{.wall_max = 1h}, {});
  EXPECT_TRUE(eventually([&] { return hurried.soft >= 1; }));
  EXPECT_EQ(second.finish(), StopReason::kNone);
  EXPECT_EQ(calm.soft, 0);
}

TEST(WatchdogTest, CountsCpuTimeNotWaiting) {
  Watchdog watchdog;
  Recorder target;
  Watchdog::Watch watch(watchdog, target, RunLimits{.wall_max = 0ns, .cpu_max = 20ms}, {});
  // Not `eventually`, which yields: beside busy processes it hardly gets any CPU time.
  const auto begin = thread_cpu_time();
  while (target.soft == 0 && thread_cpu_time() - begin < 20s) {
  }
  EXPECT_GE(target.soft, 1);
  EXPECT_EQ(watch.finish(), StopReason::kCpuLimit);
}

TEST(WatchdogTest, NoticesCancellation) {
  Watchdog watchdog;
  Recorder target;
  std::stop_source source;
  Watchdog::Watch watch(watchdog, target, RunLimits{.wall_max = 0ns}, source.get_token());
  source.request_stop();
  EXPECT_TRUE(eventually([&] { return target.soft >= 1; }));
  EXPECT_EQ(watch.finish(), StopReason::kCancelled);
}

}  // namespace
}  // namespace sw::engine
