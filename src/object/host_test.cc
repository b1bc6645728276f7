// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "object/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "object/host_fixture.h"
#include "storage/sqlite/sqlite_storage.h"

namespace sw::object {
namespace {

using std::chrono::milliseconds;
using storage::Transaction;
using testing::ElementsAre;

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
