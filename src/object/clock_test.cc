// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "object/clock.h"

#include <gtest/gtest.h>

#include <future>
#include <string>

namespace sw::object {
namespace {

using std::chrono::milliseconds;

Time at(std::int64_t ms) { return Time(milliseconds(ms)); }

TEST(ManualClock, FiresTimersInTheOrderOfTheirTimes) {
  ManualClock clock(at(0));
  std::string fired;
  const auto a = clock.make_timer([&] { fired += "a"; });
  const auto b = clock.make_timer([&] { fired += "b"; });
  const auto c = clock.make_timer([&] { fired += "c"; });
  a->set(at(20));
  b->set(at(10));
  c->set(at(15));
  c->set(std::nullopt);
  EXPECT_EQ(clock.next(), at(10));
  clock.advance(milliseconds(9));
  EXPECT_EQ(fired, "");
  clock.advance(milliseconds(11));
  EXPECT_EQ(fired, "ba");
  clock.advance(milliseconds(100));
  EXPECT_EQ(fired, "ba");
}

TEST(SystemClock, FiresATimerThatIsDueAndNotOneThatWasTakenBack) {
  const auto clock = make_system_clock();
  std::promise<void> fired;
  bool other_fired = false;
  const auto other = clock->make_timer([&] { other_fired = true; });
  const auto timer = clock->make_timer([&] { fired.set_value(); });
  other->set(clock->now() + std::chrono::hours(1));
  timer->set(clock->now());
  fired.get_future().wait();
  other->set(std::nullopt);
  EXPECT_FALSE(other_fired);
}

TEST(SystemClock, FiresATimerThatIsMovedBeforeAllOthers) {
  const auto clock = make_system_clock();
  std::promise<void> fired;
  const auto late = clock->make_timer([] {});
  const auto moved = clock->make_timer([&] { fired.set_value(); });
  late->set(clock->now() + std::chrono::hours(2));
  moved->set(clock->now() + std::chrono::hours(3));
  moved->set(clock->now() + milliseconds(1));
  fired.get_future().wait();
}

TEST(SystemClock, ATimerThatIsGoneDoesNotFire) {
  const auto clock = make_system_clock();
  for (int i = 0; i < 200; ++i) {
    auto alive = std::make_unique<int>(i);
    auto timer = clock->make_timer([&] { ASSERT_TRUE(alive); });
    timer->set(clock->now());
    timer.reset();
    alive.reset();
  }
}

}  // namespace
}  // namespace sw::object
