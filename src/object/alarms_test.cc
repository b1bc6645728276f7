// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "object/alarms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace sw::object {
namespace {

using std::chrono::milliseconds;
using storage::DueAlarm;
using storage::ObjectName;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Time at(std::int64_t ms) { return Time(milliseconds(ms)); }

/// A storage with nothing but an index of alarms, which the test fills.
class Index final : public storage::Storage {
 public:
  Result<std::vector<DueAlarm>> alarms_until(Time until, std::size_t count_max) override {
    if (broken) return Error{ErrorCode::kUnavailable, "the disk is away", 0};
    std::vector<DueAlarm> found;
    for (const auto& [name, time] : alarms) {
      if (time <= until) found.push_back({name, time});
    }
    std::ranges::sort(found, {}, &DueAlarm::time);
    found.resize(std::min(found.size(), count_max));
    if (after_reading) std::exchange(after_reading, nullptr)();
    return found;
  }

  Result<std::unique_ptr<storage::ObjectStorage>> open(const ObjectName& /*name*/,
                                                       const storage::Schema& /*schema*/) override {
    return Error{ErrorCode::kNotSupported, "", 0};
  }
  Result<std::optional<storage::ObjectInfo>> find(const ObjectName& /*name*/) override {
    return Error{ErrorCode::kNotSupported, "", 0};
  }
  Result<std::vector<storage::ObjectInfo>> list(std::string_view /*class_name*/,
                                                std::string_view /*after_id*/,
                                                std::size_t /*count_max*/) override {
    return Error{ErrorCode::kNotSupported, "", 0};
  }
  Result<void> remove(const ObjectName& /*name*/) override {
    return Error{ErrorCode::kNotSupported, "", 0};
  }
  Result<void> change(const storage::Changes& /*changes*/) override {
    return Error{ErrorCode::kNotSupported, "", 0};
  }
  Result<storage::BackupReport> back_up(const std::filesystem::path& /*destination*/) override {
    return Error{ErrorCode::kNotSupported, "", 0};
  }
  void on_alarm_set(std::function<void(Time)> /*listener*/) override {}

  std::map<ObjectName, Time> alarms;
  std::function<void()> after_reading;  ///< called once, when the answer is made
  bool broken = false;
};

/// Everything happens on the test's thread, when the test says so.
class AlarmsTest : public testing::Test {
 protected:
  void set(const std::string& id, Time time) { index_.alarms[{"counter", id}] = time; }
  void unset(const std::string& id) { index_.alarms.erase({"counter", id}); }

  /// What would be done on threads that may wait. How much that was.
  std::size_t run_tasks() {
    std::size_t count = 0;
    for (; !tasks_.empty(); ++count) {
      const auto task = std::move(tasks_.front());
      tasks_.erase(tasks_.begin());
      task();
    }
    return count;
  }
  /// The objects with an alarm under way, in the order of delivery.
  std::vector<std::string> under_way() const {
    std::vector<std::string> ids;
    for (const auto& [id, done] : under_way_) ids.push_back(id);
    return ids;
  }
  /// The alarm of the object that got its own first has ended.
  void end_first(const Result<void>& outcome) {
    const auto [id, done] = std::move(under_way_.front());
    under_way_.erase(under_way_.begin());
    if (outcome.ok()) unset(id);
    done(outcome);
    run_tasks();
  }

  ManualClock clock_{at(1'000'000)};
  Index index_;
  std::vector<std::function<void()>> tasks_;
  std::vector<std::pair<std::string, std::function<void(Result<void>)>>> under_way_;
  std::vector<std::string> notices_;
  Alarms alarms_{
      index_,
      clock_,
      {.at_once = 2, .retry_first = milliseconds(100), .retry_longest = milliseconds(300)},
      {.run = [this](std::function<void()> task) { tasks_.push_back(std::move(task)); },
       .deliver =
           [this](DueAlarm alarm, std::function<void(Result<void>)> done) {
             under_way_.emplace_back(std::move(alarm.name.id), std::move(done));
           },
       .notice = [this](std::string_view text) { notices_.emplace_back(text); },
       .mine = [](const ObjectName& name) { return name.class_name == "counter"; }}};
};

TEST_F(AlarmsTest, WhatIsDueIsDeliveredAndTheTimerIsSetToTheNext) {
  set("late", clock_.now() + milliseconds(500));
  set("due", at(5));
  alarms_.start();
  run_tasks();
  EXPECT_THAT(under_way(), ElementsAre("due"));
  EXPECT_EQ(clock_.next(), clock_.now() + milliseconds(500));
  end_first({});
  EXPECT_THAT(under_way(), IsEmpty());
  clock_.advance(milliseconds(500));
  run_tasks();
  EXPECT_THAT(under_way(), ElementsAre("late"));
}

TEST_F(AlarmsTest, NoMoreThanTheLimitAreUnderWayAndTheNextFollowTheEarliestFirst) {
  for (const char* id : {"3", "1", "5", "2", "4"}) set(id, at(std::stoi(id)));
  alarms_.start();
  run_tasks();
  EXPECT_THAT(under_way(), ElementsAre("1", "2"));
  end_first({});
  EXPECT_THAT(under_way(), ElementsAre("2", "3"));
  end_first({});
  end_first({});
  end_first({});
  EXPECT_THAT(under_way(), ElementsAre("5"));
}

TEST_F(AlarmsTest, AnAlarmThatIsSetWhileTheIndexIsBeingReadIsNotMissed) {
  index_.after_reading = [this] {
    set("a", clock_.now());
    alarms_.consider(clock_.now());
  };
  alarms_.start();
  run_tasks();
  EXPECT_THAT(under_way(), ElementsAre("a"));
}

TEST_F(AlarmsTest, OnlyAnEarlierAlarmMovesTheTimerAndNoneToComeNeedsTheIndex) {
  set("a", clock_.now() + milliseconds(500));
  alarms_.start();
  run_tasks();
  alarms_.consider(clock_.now() + milliseconds(600));
  EXPECT_EQ(clock_.next(), clock_.now() + milliseconds(500));
  alarms_.consider(clock_.now() + milliseconds(400));
  EXPECT_EQ(clock_.next(), clock_.now() + milliseconds(400));
  EXPECT_EQ(run_tasks(), 0u);
}

TEST_F(AlarmsTest, AnIndexThatCannotBeReadIsReadAgainLater) {
  set("a", at(5));
  index_.broken = true;
  alarms_.start();
  run_tasks();
  EXPECT_THAT(under_way(), IsEmpty());
  EXPECT_THAT(notices_, ElementsAre(HasSubstr("the disk is away")));
  index_.broken = false;
  ASSERT_TRUE(clock_.next().has_value());
  clock_.advance(*clock_.next() - clock_.now());
  run_tasks();
  EXPECT_THAT(under_way(), ElementsAre("a"));
}

TEST_F(AlarmsTest, PausesAfterFailuresDoubleUpToTheLongestAndStartAnewAfterASuccess) {
  const Error failure{ErrorCode::kUnavailable, "not now", 0};
  set("a", at(5));
  alarms_.start();
  run_tasks();
  for (const int pause : {100, 200, 300, 300}) {
    ASSERT_THAT(under_way(), ElementsAre("a"));
    end_first(failure);
    EXPECT_EQ(clock_.next(), clock_.now() + milliseconds(pause));
    clock_.advance(milliseconds(pause));
    run_tasks();
  }
  end_first({});
  set("a", clock_.now());
  alarms_.consider(clock_.now());
  run_tasks();
  end_first(failure);
  EXPECT_EQ(clock_.next(), clock_.now() + milliseconds(100));
  EXPECT_EQ(notices_.size(), 5u);
}

TEST_F(AlarmsTest, AnObjectThatFailedDoesNotHoldUpTheOthers) {
  set("a", at(5));
  alarms_.start();
  run_tasks();
  end_first(Error{ErrorCode::kUnavailable, "not now", 0});
  set("b", clock_.now());
  alarms_.consider(clock_.now());
  run_tasks();
  EXPECT_THAT(under_way(), ElementsAre("b"));
}

TEST_F(AlarmsTest, AlarmsOfOtherHostsAreNotDelivered) {
  for (int i = 0; i < 20; ++i) index_.alarms[{"other", std::to_string(i)}] = at(i);
  set("a", at(100));
  alarms_.start();
  run_tasks();
  EXPECT_THAT(under_way(), ElementsAre("a"));
}

TEST_F(AlarmsTest, NothingIsDeliveredBeforeTheStartOrOnceItIsStopped) {
  set("a", at(5));
  alarms_.consider(at(5));
  EXPECT_EQ(run_tasks(), 0u);
  alarms_.start();
  alarms_.stop();  // while the index is about to be read
  run_tasks();
  alarms_.consider(at(5));
  run_tasks();
  EXPECT_THAT(under_way(), IsEmpty());
  EXPECT_EQ(clock_.next(), std::nullopt);
}

}  // namespace
}  // namespace sw::object
