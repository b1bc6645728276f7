// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "object/watched_storage.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "storage/memory/memory_storage.h"
#include "storage/sqlite/sqlite_storage.h"

namespace sw::object {
namespace {

using storage::Reader;
using storage::Time;
using storage::Transaction;

Result<void> put(Transaction& transaction, const std::string& value) {
  return transaction.put(1, "key", as_bytes(value));
}

std::string value_of(WatchedStorage& watched) {
  std::string value;
  EXPECT_TRUE(watched
                  .read([&](Reader& reader) -> Result<void> {
                    SW_TRY(const auto bytes, reader.get(1, "key"));
                    value = bytes ? std::string(as_text(*bytes)) : "none";
                    return {};
                  })
                  .ok());
  return value;
}

class WatchedStorageTest : public testing::Test {
 protected:
  std::unique_ptr<WatchedStorage> open() {
    return std::make_unique<WatchedStorage>(storage_->open({"class", "a"}, {}).value(),
                                            [this](Time time) { alarms_.push_back(time); });
  }
  std::string stored() { return value_of(*watched_); }

  storage::MemoryDisk disk_{storage::Bodies::kTwice};
  std::unique_ptr<storage::Storage> storage_ = storage::open_memory_storage(disk_);
  std::vector<Time> alarms_;
  std::unique_ptr<WatchedStorage> watched_ = open();
};

TEST_F(WatchedStorageTest, PassesReadsAndWritesOn) {
  EXPECT_EQ(watched_->name().id, "a");
  EXPECT_TRUE(watched_->transact([](Transaction& t) { return put(t, "x"); }).ok());
  EXPECT_EQ(stored(), "x");
  EXPECT_FALSE(watched_->lost());
}

TEST_F(WatchedStorageTest, AnErrorOfTheBodyUndoesItsWorkAndLosesNothing) {
  const auto refused = watched_->transact([](Transaction& transaction) -> Result<void> {
    SW_CHECK_OK(put(transaction, "x"));
    return Error{ErrorCode::kInvalidArgument, "thought better of it", 0};
  });
  EXPECT_EQ(refused.error().message, "thought better of it");
  EXPECT_FALSE(watched_->lost());
  EXPECT_EQ(stored(), "none");
}

TEST_F(WatchedStorageTest, ACommitThatFailsLosesIt) {
  disk_.fail_commits(Error{ErrorCode::kUnavailable, "disk full", 0});
  EXPECT_FALSE(watched_->transact([](Transaction& t) { return put(t, "x"); }).ok());
  disk_.fail_commits(std::nullopt);
  EXPECT_TRUE(watched_->lost());
  EXPECT_TRUE(watched_->transact([](Transaction& t) { return put(t, "y"); }).ok());
  EXPECT_TRUE(watched_->lost()) << "what is in memory has not become right by that";
}

TEST_F(WatchedStorageTest, AnotherOwnerLosesItAtTheNextReadOrWrite) {
  for (const bool read : {true, false}) {
    watched_ = open();
    const auto other = open();
    ASSERT_TRUE(other->transact([](Transaction& t) { return put(t, "other"); }).ok());
    EXPECT_FALSE(watched_->lost());
    const auto outcome = read ? watched_->read([](Reader&) { return Result<void>(); })
                              : watched_->transact([](Transaction& t) { return put(t, "x"); });
    EXPECT_EQ(outcome.error().code, ErrorCode::kConflict);
    EXPECT_TRUE(watched_->lost());
    EXPECT_FALSE(other->lost());
  }
}

TEST_F(WatchedStorageTest, AnAlarmIsToldOnceItsTransactionIsCommitted) {
  const Time time{std::chrono::milliseconds(5)};
  const auto set = [&](std::optional<Time> to) {
    return watched_->transact([to](Transaction& t) { return t.set_alarm(to); });
  };
  ASSERT_TRUE(set(time).ok());
  EXPECT_EQ(alarms_, std::vector<Time>{time});
  ASSERT_TRUE(set(std::nullopt).ok());
  ASSERT_TRUE(watched_->transact([](Transaction& t) { return put(t, "x"); }).ok());
  disk_.fail_commits(Error{ErrorCode::kUnavailable, "disk full", 0});
  EXPECT_FALSE(set(time).ok());
  EXPECT_EQ(alarms_.size(), 1u);
}

TEST_F(WatchedStorageTest, WhoIsToldOfAnAlarmMayUseTheStorage) {
  std::optional<Time> seen;
  WatchedStorage* itself = nullptr;
  WatchedStorage watched(storage_->open({"class", "b"}, {}).value(), [&](Time) {
    ASSERT_TRUE(itself
                    ->read([&](Reader& reader) -> Result<void> {
                      SW_TRY(seen, reader.alarm());
                      return {};
                    })
                    .ok());
  });
  itself = &watched;
  ASSERT_TRUE(watched.transact([](Transaction& t) { return t.set_alarm(Time()); }).ok());
  EXPECT_EQ(seen, Time());
}

TEST_F(WatchedStorageTest, DestroyingItLeavesAHandleForANewLife) {
  ASSERT_TRUE(watched_->transact([](Transaction& t) { return put(t, "x"); }).ok());
  ASSERT_TRUE(watched_->destroy().ok());
  EXPECT_FALSE(watched_->lost());
  EXPECT_EQ(stored(), "none");
  ASSERT_TRUE(watched_->transact([](Transaction& t) { return put(t, "y"); }).ok());
  EXPECT_EQ(stored(), "y");
}

TEST(WatchedStorageOverSqlite, ThreadsWaitForEachOther) {
  const auto folder =
      TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-watched-").value();
  const auto storage = storage::open_sqlite_storage(folder.path(), {}).value();
  WatchedStorage watched(storage->open({"class", "a"}, {}).value(), [](Time) {});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 25; ++k) {
        const auto written = watched.transact([&](Transaction& transaction) -> Result<void> {
          SW_TRY(const auto bytes, transaction.get(1, "key"));
          const int count = bytes ? std::stoi(std::string(as_text(*bytes))) : 0;
          return put(transaction, std::to_string(count + 1));
        });
        EXPECT_TRUE(written.ok()) << i;
        EXPECT_TRUE(watched.read([](Reader&) { return Result<void>(); }).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(watched.lost());
  EXPECT_EQ(value_of(watched), "100");
}

}  // namespace
}  // namespace sw::object
