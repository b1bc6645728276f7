// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "object/idle_timer.h"

#include <gtest/gtest.h>

#include <vector>

namespace sw::object {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTtl{1000};
Time at(std::int64_t ms) { return Time(milliseconds(ms)); }

struct CountingSlot final : AlarmSlot {
  std::optional<Time> armed;
  int reads = 0;
  int arms = 0;
  int deletions = 0;

  Result<std::optional<Time>> alarm() override {
    ++reads;
    return armed;
  }
  Result<void> set_alarm(std::optional<Time> time) override {
    ++(time ? arms : deletions);
    armed = time;
    return {};
  }
};

class IdleTimerTest : public testing::Test {
 protected:
  std::optional<Time> touch(Time now, milliseconds ttl = kTtl) {
    auto expires = timer_.touch(slot_, now, ttl, [this](Time used) {
      rearmed_.push_back(used);
      return Result<void>();
    });
    EXPECT_TRUE(expires.ok());
    return *expires;
  }

  CountingSlot slot_;
  IdleTimer timer_;
  std::vector<Time> rearmed_;
};

TEST_F(IdleTimerTest, TheFirstTouchArmsAndTellsWhen) {
  EXPECT_EQ(touch(at(5000)), at(6000));
  EXPECT_EQ(slot_.armed, at(6000));
  EXPECT_EQ(rearmed_, std::vector{at(5000)});
}

TEST_F(IdleTimerTest, ATouchWithinATenthChangesNothing) {
  touch(at(5000));
  EXPECT_EQ(touch(at(5100)), at(6000));
  EXPECT_EQ(slot_.arms, 1);
  EXPECT_EQ(rearmed_.size(), 1U);
  EXPECT_EQ(touch(at(5101)), at(6101));
  EXPECT_EQ(slot_.arms, 2);
}

TEST_F(IdleTimerTest, AStoredDeadlineLongPastIsMoved) {
  slot_.armed = at(10);
  EXPECT_EQ(touch(at(5000)), at(6000));
  EXPECT_EQ(slot_.armed, at(6000));
  EXPECT_EQ(rearmed_, std::vector{at(5000)});
}

TEST_F(IdleTimerTest, WithoutATimeToLiveAnArmedAlarmIsDeletedOnce) {
  slot_.armed = at(6000);
  EXPECT_EQ(touch(at(5000), milliseconds(0)), std::nullopt);
  EXPECT_EQ(touch(at(5001), milliseconds(0)), std::nullopt);
  EXPECT_EQ(slot_.deletions, 1);
  EXPECT_TRUE(rearmed_.empty());
}

TEST_F(IdleTimerTest, WithoutATimeToLiveAndAnAlarmNothingIsDeleted) {
  EXPECT_EQ(touch(at(5000), milliseconds(0)), std::nullopt);
  EXPECT_EQ(slot_.deletions, 0);
}

TEST_F(IdleTimerTest, AnAlarmAfterTheTimeToLiveDestroys) {
  EXPECT_EQ(*timer_.alarm(slot_, at(6000), kTtl, at(5000)), IdleTimer::Verdict::kDestroy);
  EXPECT_EQ(slot_.arms, 0);
}

TEST_F(IdleTimerTest, AnAlarmAfterAUseIsSetToItsEnd) {
  EXPECT_EQ(*timer_.alarm(slot_, at(6000), kTtl, at(5001)), IdleTimer::Verdict::kRearmed);
  EXPECT_EQ(slot_.armed, at(6001));
}

TEST_F(IdleTimerTest, AnAlarmWithoutATimeToLiveMeansNothing) {
  EXPECT_EQ(*timer_.alarm(slot_, at(6000), milliseconds(0), at(1)), IdleTimer::Verdict::kDisabled);
  EXPECT_EQ(slot_.arms, 0);
}

TEST_F(IdleTimerTest, TheStorageIsReadOnceUntilAReset) {
  touch(at(5000));
  touch(at(5001));
  EXPECT_EQ(slot_.reads, 1);
  timer_.reset();
  touch(at(5002));
  EXPECT_EQ(slot_.reads, 2);
}

TEST(IdleTtl, IsTheNumberOrTheDefault) {
  using Setting = std::optional<std::string_view>;
  for (const Setting setting :
       {Setting(), Setting(""), Setting("x"), Setting("-1"), Setting("5 s"), Setting("inf")}) {
    EXPECT_EQ(parse_idle_ttl(setting), kDefaultIdleTtl) << setting.value_or("(unset)");
  }
  EXPECT_EQ(parse_idle_ttl("0"), milliseconds(0));
  EXPECT_EQ(parse_idle_ttl("1500"), milliseconds(1500));
  EXPECT_EQ(parse_idle_ttl("1e3"), milliseconds(1000));
}

}  // namespace
}  // namespace sw::object
