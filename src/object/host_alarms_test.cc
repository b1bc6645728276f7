// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Alarms of objects.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>

#include "object/host_fixture.h"

namespace sw::object {
namespace {

using std::chrono::milliseconds;
using storage::Transaction;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(HostTest, AnAlarmGoesOffAtItsTimeAndIsGone) {
  host_->start_alarms();
  const Time time = clock_.now() + milliseconds(500);
  set_alarm("a", time);
  wait_for_timer(time);
  clock_.advance(milliseconds(499));
  EXPECT_EQ(log_.lines().size(), 1u);
  clock_.advance(milliseconds(1));
  log_.wait_for(2);
  EXPECT_EQ(log_.lines().back(), "alarm a@1000500");
  wait_until_no_alarms();
  EXPECT_EQ(get("a"), 0);
}

TEST_F(HostTest, AnAlarmThatCameDueWhileNothingRanGoesOffAtTheStart) {
  set_alarm("a", at(5));
  restart({});
  clock_.advance(milliseconds(10));
  host_->start_alarms();
  log_.wait_for(4);
  EXPECT_THAT(log_.lines(), ElementsAre("start a", "drop a", "start a", "alarm a@5"));
}

TEST_F(HostTest, AnAlarmThatWasMovedMeanwhileDoesNotGoOff) {
  host_->start_alarms();
  const Time time = clock_.now() + milliseconds(500);
  set_alarm("a", time);
  wait_for_timer(time);
  Door door;
  std::promise<void> opening;
  while_opening = [&](const std::string& id) -> Result<void> {
    if (id != "b") return {};
    opening.set_value();
    door.pass();
    return {};
  };
  {  // the alarm of b is on its way, and b is being opened
    auto other = *storage_->open({"counter", "b"}, {});
    ASSERT_TRUE(other->transact([&](Transaction& t) { return t.set_alarm(time); }).ok());
  }
  clock_.advance(milliseconds(500));
  opening.get_future().wait();
  const Time later = clock_.now() + milliseconds(100);
  {
    auto other = *storage_->open({"counter", "b"}, {});
    ASSERT_TRUE(other->transact([&](Transaction& t) { return t.set_alarm(later); }).ok());
  }
  while_opening = nullptr;
  door.open();
  clock_.advance(milliseconds(100));
  while (log_.count("alarm b@1000600") == 0) {
    clock_.advance(milliseconds(1'000));  // b was lost to the other owner, and is tried again
    std::this_thread::yield();
  }
  EXPECT_EQ(log_.count("alarm b@1000500"), 0u);
}

TEST_F(HostTest, AnAlarmThatFailsComesAgainLaterAndLaterEachTime) {
  restart({.alarm_retry_first = milliseconds(100)});
  host_->start_alarms();
  counter("a")->alarm_failures = 2;
  set_alarm("a", at(5));
  log_.wait_for(2);
  wait_for_timer(clock_.now() + milliseconds(100));
  clock_.advance(milliseconds(99));
  EXPECT_EQ(log_.lines().size(), 2u);
  clock_.advance(milliseconds(1));
  log_.wait_for(3);
  wait_for_timer(clock_.now() + milliseconds(200));
  clock_.advance(milliseconds(200));
  log_.wait_for(4);
  wait_until_no_alarms();
  EXPECT_THAT(notices_.lines().at(0), HasSubstr("not now"));
}

TEST_F(HostTest, AnAlarmMaySetTheNext) {
  host_->start_alarms();
  const Time next = clock_.now() + milliseconds(50);
  counter("a")->next_alarm = next;
  set_alarm("a", at(5));
  wait_for_timer(next);
  clock_.advance(milliseconds(50));
  log_.wait_for(3);
  EXPECT_EQ(log_.lines().back(), "alarm a@1000050");
}

TEST_F(HostTest, AnObjectIsUsedWhileItsAlarmGoesOff) {
  host_->start_alarms();
  Door door;
  counter("a")->door = &door;
  set_alarm("a", at(5));
  log_.wait_for(2);
  EXPECT_EQ(*add("a", 1), 1);
  set_alarm("a", at(2'000'000));
  door.open();
  restart({});  // once it has ended
  EXPECT_EQ((*storage_->find({"counter", "a"}))->alarm, at(2'000'000));
}

TEST_F(HostTest, ManyAlarmsAtOnceAllGoOff) {
  constexpr int kObjects = 300;
  for (int i = 0; i < kObjects; ++i) set_alarm(std::to_string(i), at(i));
  restart({.resident_max = 20, .alarms_at_once = 8});
  host_->start_alarms();
  wait_until_no_alarms();
  for (int i = 0; i < kObjects; ++i) {
    EXPECT_EQ(log_.count("alarm " + std::to_string(i) + "@" + std::to_string(i)), 1u) << i;
  }
}

TEST_F(HostTest, AlarmsOfOtherHostsClassesAreLeftAloneAndDoNotHoldUpOurs) {
  constexpr int kOthers = 100;
  for (int i = 0; i < kOthers; ++i) {
    auto other = *storage_->open({"other", std::to_string(i)}, {});
    ASSERT_TRUE(other->transact([](Transaction& t) { return t.set_alarm(at(5)); }).ok());
  }
  restart({.alarms_at_once = 2});
  set_alarm("a", at(6));
  host_->start_alarms();
  log_.wait_for(2);
  EXPECT_EQ(log_.lines().back(), "alarm a@6");
  while ((*storage_->alarms_until(Time::max(), 1000)).size() != kOthers) std::this_thread::yield();
  EXPECT_TRUE(notices_.lines().empty());
}

}  // namespace
}  // namespace sw::object
