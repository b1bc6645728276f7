// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "object/idle_alarm.h"

#include <gtest/gtest.h>

#include "storage/memory/memory_storage.h"

namespace sw::object {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTtl{1000};
Time at(std::int64_t ms) { return Time(milliseconds(ms)); }

class IdleAlarmTest : public testing::Test {
 protected:
  IdleAlarm touch(Time now, milliseconds ttl = kTtl) {
    IdleAlarm touched;
    EXPECT_TRUE(object_
                    ->transact([&](storage::Transaction& transaction) -> Result<void> {
                      SW_TRY(touched, touch_idle_alarm(transaction, now, ttl));
                      return {};
                    })
                    .ok());
    return touched;
  }

  IdleVerdict check(Time now, Time last_used, milliseconds ttl = kTtl) {
    IdleVerdict verdict = IdleVerdict::kDisabled;
    EXPECT_TRUE(object_
                    ->transact([&](storage::Transaction& transaction) -> Result<void> {
                      SW_TRY(verdict, check_idle_alarm(transaction, now, ttl, last_used));
                      return {};
                    })
                    .ok());
    return verdict;
  }

  std::optional<Time> armed() {
    std::optional<Time> alarm;
    EXPECT_TRUE(object_
                    ->read([&](storage::Reader& reader) -> Result<void> {
                      SW_TRY(alarm, reader.alarm());
                      return {};
                    })
                    .ok());
    return alarm;
  }

  void arm(std::optional<Time> time) {
    EXPECT_TRUE(object_
                    ->transact([&](storage::Transaction& transaction) {
                      return transaction.set_alarm(time);
                    })
                    .ok());
  }

  storage::MemoryDisk disk_{storage::Bodies::kTwice};
  std::unique_ptr<storage::Storage> storage_ = storage::open_memory_storage(disk_);
  std::unique_ptr<storage::ObjectStorage> object_ = storage_->open({"thing", "1"}, {}).value();
};

TEST_F(IdleAlarmTest, TheFirstTouchArmsAndTellsWhen) {
  const IdleAlarm touched = touch(at(5000));
  EXPECT_EQ(touched.expires, at(6000));
  EXPECT_TRUE(touched.moved);
  EXPECT_EQ(armed(), at(6000));
}

TEST_F(IdleAlarmTest, ATouchWithinATenthChangesNothing) {
  touch(at(5000));
  EXPECT_EQ(touch(at(5100)).expires, at(6000));
  EXPECT_FALSE(touch(at(5100)).moved);
  EXPECT_EQ(armed(), at(6000));
  EXPECT_TRUE(touch(at(5101)).moved);
  EXPECT_EQ(armed(), at(6101));
}

TEST_F(IdleAlarmTest, AStoredAlarmLongPastOrTooFarAheadIsMoved) {
  for (const Time stored : {at(10), at(1'000'000), Time::min(), Time::max()}) {
    arm(stored);
    EXPECT_TRUE(touch(at(5000)).moved);
    EXPECT_EQ(armed(), at(6000));
  }
}

TEST_F(IdleAlarmTest, ATouchThatWasUndoneIsForgotten) {
  const auto undone = object_->transact([&](storage::Transaction& transaction) -> Result<void> {
    SW_CHECK_OK([&]() -> Result<void> {
      SW_TRY(const IdleAlarm ignored, touch_idle_alarm(transaction, at(5000), kTtl));
      return ignored.moved ? Result<void>() : Error{ErrorCode::kInternal, "not moved", 0};
    }());
    return Error{ErrorCode::kConflict, "undone", 0};
  });
  EXPECT_EQ(undone.error().message, "undone");
  EXPECT_EQ(armed(), std::nullopt);
  EXPECT_TRUE(touch(at(5001)).moved);
  EXPECT_EQ(armed(), at(6001));
}

TEST_F(IdleAlarmTest, WithoutATimeToLiveTheAlarmIsDeleted) {
  arm(at(6000));
  const IdleAlarm touched = touch(at(5000), milliseconds(0));
  EXPECT_EQ(touched.expires, std::nullopt);
  EXPECT_FALSE(touched.moved);
  EXPECT_EQ(armed(), std::nullopt);
}

TEST_F(IdleAlarmTest, AnAlarmAfterTheTimeToLiveDestroys) {
  EXPECT_EQ(check(at(6000), at(5000)), IdleVerdict::kDestroy);
  EXPECT_EQ(armed(), std::nullopt);
}

TEST_F(IdleAlarmTest, AnAlarmAfterAUseIsSetToItsEnd) {
  EXPECT_EQ(check(at(6000), at(5001)), IdleVerdict::kRearmed);
  EXPECT_EQ(armed(), at(6001));
}

TEST_F(IdleAlarmTest, AUseInTheFutureCountsAsOneNow) {
  EXPECT_EQ(check(at(6000), Time::max()), IdleVerdict::kRearmed);
  EXPECT_EQ(armed(), at(7000));
  EXPECT_EQ(check(at(6000), Time::min()), IdleVerdict::kDestroy);
}

TEST_F(IdleAlarmTest, AnAlarmWithoutATimeToLiveMeansNothing) {
  EXPECT_EQ(check(at(6000), at(1), milliseconds(0)), IdleVerdict::kDisabled);
  EXPECT_EQ(armed(), std::nullopt);
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
