// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "object/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/thread_safety.h"
#include "storage/memory/memory_storage.h"
#include "storage/sqlite/sqlite_storage.h"

namespace sw::object {
namespace {

using std::chrono::milliseconds;
using storage::ObjectName;
using storage::Reader;
using storage::Transaction;
using testing::ElementsAre;
using testing::HasSubstr;

Time at(std::int64_t ms) { return Time(milliseconds(ms)); }

/// Notes what happens, and lets a test wait until something has.
class Log {
 public:
  void add(const std::string& line) {
    {
      const MutexLock lock(mutex_);
      lines_.push_back(line);
    }
    changed_.notify_all();
  }
  std::vector<std::string> lines() const {
    const MutexLock lock(mutex_);
    return lines_;
  }
  std::size_t count(const std::string& line) const {
    const auto all = lines();
    return static_cast<std::size_t>(std::count(all.begin(), all.end(), line));
  }
  void wait_for(std::size_t count) const {
    MutexLock lock(mutex_);
    while (lines_.size() < count) changed_.wait(lock);
  }

 private:
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<std::string> lines_ SW_GUARDED_BY(mutex_);
};

/// A door that blocks whoever comes to it until the test opens it.
class Door {
 public:
  void open() { promise_.set_value(); }
  void pass() { future_.wait(); }

 private:
  std::promise<void> promise_;
  std::shared_future<void> future_ = promise_.get_future().share();
};

Result<std::int64_t> number(Reader& reader) {
  SW_TRY(const auto value, reader.get(1, "n"));
  return value ? std::stoll(std::string(as_text(*value))) : 0;
}

Result<void> store(Transaction& transaction, std::int64_t n) {
  return transaction.put(1, "n", as_bytes(std::to_string(n)));
}

/// Counts, and keeps its count in the storage.
class Counter final : public Object {
 public:
  static Result<std::unique_ptr<Object>> open(storage::ObjectStorage& storage, Log& log) {
    auto counter = std::make_unique<Counter>(storage, log);
    std::int64_t count = 0;
    SW_CHECK_OK(storage.read([&](Reader& reader) -> Result<void> {
      SW_TRY(count, number(reader));
      return {};
    }));
    const MutexLock lock(counter->mutex_);
    counter->count_ = count;
    return std::unique_ptr<Object>(std::move(counter));
  }

  Counter(storage::ObjectStorage& storage, Log& log) : storage_(storage), log_(log) {
    log_.add("start " + storage_.name().id);
  }
  ~Counter() override { log_.add("drop " + storage_.name().id); }

  Result<std::int64_t> add(std::int64_t by) {
    const MutexLock lock(mutex_);
    const std::int64_t wanted = count_ + by;
    SW_CHECK_OK(storage_.transact([&](Transaction& t) { return store(t, wanted); }));
    count_ = wanted;
    return count_;
  }

  std::int64_t get() const {
    const MutexLock lock(mutex_);
    return count_;
  }

  Result<void> fail_in_transaction() {
    return storage_.transact([](Transaction& transaction) -> Result<void> {
      SW_CHECK_OK(store(transaction, 999));
      return Error{ErrorCode::kInvalidArgument, "thought better of it", 0};
    });
  }

  Result<void> end() {
    const MutexLock lock(mutex_);
    count_ = 0;
    return storage_.destroy();
  }

  Result<void> set_alarm(std::optional<Time> time) {
    return storage_.transact([time](Transaction& t) { return t.set_alarm(time); });
  }

  Result<void> on_alarm(Time scheduled) override {
    log_.add("alarm " + storage_.name().id + "@" +
             std::to_string(scheduled.time_since_epoch().count()));
    if (door != nullptr) door->pass();
    if (alarm_failures > 0) {
      --alarm_failures;
      return Error{ErrorCode::kUnavailable, "not now", 0};
    }
    if (next_alarm) return set_alarm(std::exchange(next_alarm, std::nullopt));
    return {};
  }

  int alarm_failures = 0;
  std::optional<Time> next_alarm;
  Door* door = nullptr;  ///< where an alarm waits

 private:
  storage::ObjectStorage& storage_;
  Log& log_;
  mutable Mutex mutex_;
  std::int64_t count_ SW_GUARDED_BY(mutex_) = 0;
};

class HostTest : public testing::Test {
 protected:
  HostTest() { restart({}); }

  void restart(HostOptions options) {
    host_.reset();
    storage_ = storage::open_memory_storage(disk_);
    options.on_notice = [this](std::string_view notice) { notices_.add(std::string(notice)); };
    host_ = std::make_unique<ObjectHost>(*storage_, clock_, std::move(options));
    host_->add_class(
        "counter", {{}, [this](storage::ObjectStorage& storage) -> Result<std::unique_ptr<Object>> {
                      if (while_opening) SW_CHECK_OK(while_opening(storage.name().id));
                      return Counter::open(storage, log_);
                    }});
  }

  std::shared_ptr<Counter> counter(const std::string& id) {
    return host_->get<Counter>({"counter", id}).value();
  }
  Result<std::int64_t> add(const std::string& id, std::int64_t by) { return counter(id)->add(by); }
  std::int64_t get(const std::string& id) { return counter(id)->get(); }
  void set_alarm(const std::string& id, std::optional<Time> time) {
    ASSERT_TRUE(counter(id)->set_alarm(time).ok());
  }
  void wait_for_timer(Time time) {
    while (clock_.next() != time) std::this_thread::yield();
  }
  void wait_until_no_alarms() {
    while (!(*storage_->alarms_until(Time::max(), 1)).empty()) std::this_thread::yield();
  }

  storage::MemoryDisk disk_{storage::Bodies::kTwice};
  ManualClock clock_{at(1'000'000)};
  Log log_;
  Log notices_;
  std::function<Result<void>(const std::string& id)> while_opening;
  std::unique_ptr<storage::Storage> storage_;
  std::unique_ptr<ObjectHost> host_;  // last, since its threads use the others until it is gone
};

TEST_F(HostTest, AnObjectIsMadeForTheFirstLeaseAndRemembers) {
  EXPECT_EQ(*add("a", 2), 2);
  EXPECT_EQ(*add("a", 3), 5);
  EXPECT_EQ(get("b"), 0);
  EXPECT_THAT(log_.lines(), ElementsAre("start a", "start b"));
  EXPECT_EQ(host_->resident(), 2u);
}

TEST_F(HostTest, StateOutlivesTheHost) {
  ASSERT_EQ(*add("a", 2), 2);
  restart({});
  EXPECT_EQ(get("a"), 2);
}

TEST_F(HostTest, AllLeasesAreOfOneObject) {
  const auto first = counter("a");
  const auto second = counter("a");
  EXPECT_EQ(first.get(), second.get());
}

TEST_F(HostTest, WhatIsAskedForWhileItIsBeingOpenedIsOpenedOnce) {
  Door door;
  std::promise<void> begun;
  while_opening = [&](const std::string&) -> Result<void> {
    begun.set_value();
    door.pass();
    return {};
  };
  std::vector<std::future<std::int64_t>> answers;
  for (int i = 0; i < 4; ++i) {
    answers.push_back(std::async(std::launch::async, [this] { return *add("a", 1); }));
  }
  begun.get_future().wait();
  door.open();
  std::set<std::int64_t> counts;
  for (auto& answer : answers) counts.insert(answer.get());
  EXPECT_THAT(counts, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(log_.count("start a"), 1u);
}

TEST_F(HostTest, ObjectsDoNotHoldEachOtherUp) {
  Door door;
  std::promise<void> begun;
  while_opening = [&](const std::string& id) -> Result<void> {
    if (id != "slow") return {};
    begun.set_value();
    door.pass();
    return {};
  };
  auto slow = std::async(std::launch::async, [this] { return get("slow"); });
  begun.get_future().wait();
  EXPECT_EQ(*add("b", 1), 1);
  door.open();
  EXPECT_EQ(slow.get(), 0);
}

TEST_F(HostTest, WhatCannotBeOpenedIsToldAndTriedAgain) {
  while_opening = [](const std::string&) { return Error{ErrorCode::kCorrupt, "damaged", 0}; };
  EXPECT_EQ(host_->get({"counter", "a"}).error().message, "damaged");
  EXPECT_EQ(host_->resident(), 0u);
  while_opening = nullptr;
  EXPECT_EQ(get("a"), 0);
}

TEST_F(HostTest, AnUnknownClassAndAnImpossibleNameAreErrors) {
  EXPECT_EQ(host_->get({"other", "a"}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(host_->get({"counter", ""}).error().code, ErrorCode::kInvalidArgument);
}

// ---- lost storage

TEST_F(HostTest, AfterALostCommitTheNextLeaseStartsFromWhatIsStored) {
  ASSERT_EQ(*add("a", 5), 5);
  disk_.fail_commits(Error{ErrorCode::kUnavailable, "disk full", 0});
  EXPECT_EQ(add("a", 1).error().message, "disk full");
  disk_.fail_commits(std::nullopt);
  EXPECT_THAT(log_.lines(), ElementsAre("start a", "drop a"));
  EXPECT_EQ(get("a"), 5);
  EXPECT_EQ(log_.count("start a"), 2u);
  EXPECT_EQ(*add("a", 1), 6);
}

TEST_F(HostTest, AnObjectThatWasLostStaysWithThoseWhoHoldItAndCanChangeNothing) {
  const auto old = counter("a");
  ASSERT_EQ(*old->add(5), 5);
  disk_.fail_commits(Error{ErrorCode::kUnavailable, "disk full", 0});
  EXPECT_FALSE(old->add(1).ok());
  disk_.fail_commits(std::nullopt);
  const auto fresh = counter("a");
  EXPECT_NE(fresh.get(), old.get());
  EXPECT_EQ(*fresh->add(1), 6);
  EXPECT_EQ(old->add(1).error().code, ErrorCode::kConflict);
  EXPECT_EQ(host_->resident(), 1u);
}

TEST_F(HostTest, AnErrorOfATransactionsBodyIsTheObjectsOwnAffair) {
  ASSERT_EQ(*add("a", 5), 5);
  EXPECT_EQ(counter("a")->fail_in_transaction().error().message, "thought better of it");
  EXPECT_EQ(*add("a", 1), 6);
  EXPECT_EQ(log_.count("start a"), 1u);
}

TEST_F(HostTest, AnObjectThatWasTakenOverIsMadeAgain) {
  ASSERT_EQ(*add("a", 5), 5);
  {
    auto other = *storage_->open({"counter", "a"}, {});
    ASSERT_TRUE(other->transact([](Transaction& t) { return store(t, 70); }).ok());
  }
  EXPECT_EQ(add("a", 1).error().code, ErrorCode::kConflict);
  EXPECT_EQ(*add("a", 1), 71);
}

TEST_F(HostTest, ADestroyedObjectBeginsANewLife) {
  ASSERT_EQ(*add("a", 5), 5);
  ASSERT_TRUE(counter("a")->end().ok());
  EXPECT_FALSE((*storage_->find({"counter", "a"})).has_value());
  EXPECT_EQ(*add("a", 1), 1);
  restart({});
  EXPECT_EQ(get("a"), 1);
}

// ---- eviction

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

// ---- alarms

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

// ---- the end

TEST_F(HostTest, ShuttingDownDropsTheYoungestFirst) {
  for (const char* id : {"a", "b", "c"}) ASSERT_EQ(*add(id, 1), 1);
  ASSERT_EQ(*add("a", 1), 2);
  host_->shut_down();
  const auto lines = log_.lines();
  EXPECT_THAT(std::vector<std::string>(lines.end() - 3, lines.end()),
              ElementsAre("drop c", "drop b", "drop a"));
  EXPECT_EQ(host_->get({"counter", "a"}).error().message, "shutting down");
  EXPECT_EQ(host_->resident(), 0u);
}

TEST_F(HostTest, ShuttingDownWaitsForLeasesAndRefusesNewOnes) {
  auto held = counter("a");
  auto shutting = std::async(std::launch::async, [this] { host_->shut_down(); });
  while (host_->get({"counter", "b"}).ok()) std::this_thread::yield();
  EXPECT_EQ(host_->get({"counter", "a"}).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(shutting.wait_for(milliseconds(0)), std::future_status::timeout);
  EXPECT_EQ(*held->add(1), 1) << "what is under way ends well";
  held.reset();
  shutting.get();
  EXPECT_EQ(log_.count("drop a"), 1u);
}

TEST_F(HostTest, ShuttingDownWaitsForAnObjectThatIsBeingOpenedOrDropped) {
  restart({.resident_max = 1});
  Door door;
  std::promise<void> opening;
  while_opening = [&](const std::string&) -> Result<void> {
    opening.set_value();
    door.pass();
    return {};
  };
  auto getting = std::async(std::launch::async, [this] { return get("a"); });
  opening.get_future().wait();
  auto shutting = std::async(std::launch::async, [this] { host_->shut_down(); });
  EXPECT_EQ(shutting.wait_for(milliseconds(0)), std::future_status::timeout);
  door.open();
  EXPECT_EQ(getting.get(), 0);
  shutting.get();
  EXPECT_THAT(log_.lines(), ElementsAre("start a", "drop a"));
}

TEST_F(HostTest, ShuttingDownWaitsForAnAlarmUnderWay) {
  host_->start_alarms();
  Door door;
  counter("a")->door = &door;
  set_alarm("a", at(5));
  log_.wait_for(2);
  auto shutting = std::async(std::launch::async, [this] { host_->shut_down(); });
  EXPECT_EQ(shutting.wait_for(milliseconds(0)), std::future_status::timeout);
  door.open();
  shutting.get();
  EXPECT_TRUE((*storage_->alarms_until(Time::max(), 1)).empty());
}

// ---- over the real storage

class HostOverSqlite : public testing::Test {
 protected:
  std::unique_ptr<ObjectHost> host(HostOptions options) {
    auto host = std::make_unique<ObjectHost>(*storage_, clock_, std::move(options));
    host->add_class("counter", {{}, [this](storage::ObjectStorage& storage) {
                                  return Counter::open(storage, log_);
                                }});
    return host;
  }

  const TemporaryDirectory folder_ =
      TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-host-").value();
  ManualClock clock_{at(1000)};
  Log log_;
  std::unique_ptr<storage::Storage> storage_ =
      storage::open_sqlite_storage(folder_.path(), {.idle_open_max = 4}).value();
};

TEST_F(HostOverSqlite, ObjectsKeepTheirCountsAndAlarmsThroughRestarts) {
  constexpr int kObjects = 20;
  for (int round = 1; round <= 3; ++round) {
    const auto host = this->host({.resident_max = 5});
    host->start_alarms();
    for (int i = 0; i < kObjects; ++i) {
      EXPECT_EQ(*host->get<Counter>({"counter", std::to_string(i)}).value()->add(1), round);
    }
    ASSERT_TRUE(host->get<Counter>({"counter", "3"}).value()->set_alarm(clock_.now()).ok());
    while (!(*storage_->alarms_until(Time::max(), 1)).empty()) std::this_thread::yield();
  }
  EXPECT_EQ(log_.count("alarm 3@1000"), 3u);
}

TEST_F(HostOverSqlite, AnAlarmAndItsObjectUseTheStorageSideBySide) {
  const auto host = this->host({});
  host->start_alarms();
  const auto counter = host->get<Counter>({"counter", "a"}).value();
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(counter->set_alarm(at(i)).ok());
    ASSERT_EQ(*counter->add(1), i + 1);
  }
  while (!(*storage_->alarms_until(Time::max(), 1)).empty()) std::this_thread::yield();
}

TEST_F(HostOverSqlite, GettingObjectsRacesWithTheirEviction) {
  const auto host = this->host({.resident_max = 1});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&host, i] {
      for (int k = 0; k < 40; ++k) {
        const auto object = host->get<Counter>({"counter", std::to_string((i + k) % 3)});
        EXPECT_TRUE(object.value()->add(1).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::int64_t sum = 0;
  for (const char* id : {"0", "1", "2"}) sum += host->get<Counter>({"counter", id}).value()->get();
  EXPECT_EQ(sum, 160);
}

}  // namespace
}  // namespace sw::object
