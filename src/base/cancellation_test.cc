// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/base/cancellation.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <ctime>
#include <optional>
#include <thread>

namespace sw {
namespace {

std::uint64_t now_ns() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

TEST(Cancellation, AWaitEndsAtItsDeadline) {
  const auto cancellation = Cancellation::create().value();
  const std::uint64_t deadline = now_ns() + 5'000'000;
  EXPECT_EQ(cancellation->wait_until(deadline), WaitEnd::kDeadline);
  EXPECT_GE(now_ns(), deadline);
  EXPECT_EQ(cancellation->wait_until(0), WaitEnd::kDeadline);
}

TEST(Cancellation, CancelEndsThisAndEveryLaterWaitUntilReset) {
  const auto cancellation = Cancellation::create().value();
  std::thread other([&] { cancellation->cancel(); });
  EXPECT_EQ(cancellation->wait_until(std::nullopt), WaitEnd::kCancelled);
  other.join();
  EXPECT_EQ(cancellation->wait_until(std::nullopt), WaitEnd::kCancelled);
  EXPECT_TRUE(cancellation->cancelled());
  cancellation->reset();
  EXPECT_FALSE(cancellation->cancelled());
  EXPECT_EQ(cancellation->wait_until(0), WaitEnd::kDeadline);
}

TEST(Cancellation, WakeEndsOneWait) {
  const auto cancellation = Cancellation::create().value();
  std::thread other([&] { cancellation->wake(); });
  EXPECT_EQ(cancellation->wait_until(std::nullopt), WaitEnd::kWoken);
  other.join();
  EXPECT_EQ(cancellation->wait_until(now_ns() + 1'000'000), WaitEnd::kDeadline);
  cancellation->wake();
  EXPECT_EQ(cancellation->wait_until(std::nullopt), WaitEnd::kWoken);
  cancellation->wake();
  cancellation->reset();
  EXPECT_EQ(cancellation->wait_until(now_ns() + 1'000'000), WaitEnd::kDeadline);
}

TEST(Cancellation, CancelWinsOverWake) {
  const auto cancellation = Cancellation::create().value();
  cancellation->wake();
  cancellation->cancel();
  EXPECT_EQ(cancellation->wait_until(std::nullopt), WaitEnd::kCancelled);
}

TEST(Cancellation, AReadableDescriptorEndsAWait) {
  const auto cancellation = Cancellation::create().value();
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd from(ends[0]);
  const UniqueFd to(ends[1]);
  EXPECT_EQ(cancellation->wait_until(now_ns() + 1'000'000, from.get()), WaitEnd::kDeadline);
  ASSERT_EQ(::write(to.get(), "x", 1), 1);
  EXPECT_EQ(cancellation->wait_until(std::nullopt, from.get()), WaitEnd::kReady);
  EXPECT_EQ(cancellation->wait_until(0, from.get()), WaitEnd::kReady);
}

TEST(Cancellation, ManyWakesAndCancelsFromManyThreads) {
  const auto cancellation = Cancellation::create().value();
  std::thread one([&] {
    for (int i = 0; i < 1000; ++i) cancellation->wake();
  });
  std::thread two([&] {
    for (int i = 0; i < 1000; ++i) cancellation->wake();
    cancellation->cancel();
  });
  while (cancellation->wait_until(std::nullopt) != WaitEnd::kCancelled) {
  }
  one.join();
  two.join();
}

}  // namespace
}  // namespace sw
