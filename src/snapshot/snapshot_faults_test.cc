// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Commits that fail, and packs that are damaged.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "snapshot/catalog.h"
#include "snapshot/page.h"
#include "snapshot/snapshot_store_fixture.h"

namespace sw::snapshot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(SnapshotStoreTest, CallersRowsAreInTheSameTransaction) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  const auto count_up = [](storage::Transaction& transaction) {
    return transaction.put(1, "runs", as_bytes("1"));
  };
  must(try_save(live, guest, count_up));
  must(object_->read([](storage::Reader& reader) -> Result<void> {
    SW_TRY(const auto row, reader.get(1, "runs"));
    EXPECT_TRUE(row.has_value());
    return {};
  }));
  guest.write(5000, "lost");
  const auto refuse = [](storage::Transaction&) -> Result<void> {
    return Error{ErrorCode::kInvalidArgument, "no", 0};
  };
  EXPECT_EQ(try_save(live, guest, refuse).error().message, "no");
  EXPECT_EQ(load("c").guest.memory(), image_);
}

TEST_F(SnapshotStoreTest, FailedCommitLeavesTheOldStateAndTheNextSaveWritesAll) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  guest.write(5000, "old");
  save(live, guest);
  const Bytes old = guest.memory();
  disk_.fail_commits(Error{ErrorCode::kUnavailable, "disk full", 0});
  for (int i = 0; i < 5; ++i) {
    guest.write(5000 + static_cast<std::size_t>(i) * 5000, "new");
    EXPECT_EQ(try_save(live, guest).error().message, "disk full");
    EXPECT_EQ(store_->undo("c", 0, 0).error().message, "disk full");
    EXPECT_EQ(store_->fork("c", {}, "f", 0).error().message, "disk full");
    EXPECT_EQ(store_->add_checkpoint("c", "l", 0).error().message, "disk full");
    EXPECT_EQ(store_->remove("c").error().message, "disk full");
  }
  disk_.fail_commits(std::nullopt);
  EXPECT_EQ(load("c").guest.memory(), old);
  EXPECT_THAT(store_->contexts(), ElementsAre("c"));
  save(live, guest);
  restart({});
  EXPECT_EQ(load("c").guest.memory(), guest.memory());
}

TEST_F(SnapshotStoreTest, FirstSaveThatFailsLeavesNoContext) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  disk_.fail_commits(Error{ErrorCode::kUnavailable, "disk full", 0});
  EXPECT_FALSE(try_save(live, guest).ok());
  EXPECT_FALSE(store_->has("c"));
  disk_.fail_commits(std::nullopt);
  save(live, guest);
  EXPECT_EQ(load("c").guest.memory(), guest.memory());
}

TEST_F(SnapshotStoreTest, DamagedPackIsReportedAndNotRestored) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  guest.write(5000, "x = 1");
  guest.write(40000, "y = 1");
  save(live, guest);
  damage_packs([](std::string_view) { return true; });
  restart({});
  const auto restored = try_load("c");
  ASSERT_FALSE(restored.ok());
  EXPECT_EQ(restored.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(restored.error().message, HasSubstr("checksum mismatch"));
}

TEST_F(SnapshotStoreTest, DamageOfAnOlderPackNamesThePage) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  guest.write(9 * kPageBytes, "x = 1");
  save(live, guest);
  const std::string first_key = [&] {
    std::string key;
    must(object_->read([&](storage::Reader& reader) {
      return reader.scan_keys({.table = Options().packs_table, .from = {}, .to = {}},
                              storage::Order::kAscending, [&](std::string_view k, std::size_t) {
                                key = k;
                                return Result<storage::Scan>(storage::Scan::kStop);
                              });
    }));
    return key;
  }();
  guest.write(9 * kPageBytes, "x = 2");  // a difference to the first
  save(live, guest);
  damage_packs([&](std::string_view key) { return key == first_key; });
  const auto restored = try_load("c");
  ASSERT_FALSE(restored.ok());
  EXPECT_THAT(restored.error().message, HasSubstr("page 9 of the memory cannot be restored"));
}

TEST_F(SnapshotStoreTest, MissingPackIsReported) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  guest.write(9 * kPageBytes, "x = 1");
  save(live, guest);
  const PackId first = *live.version();
  guest.write(20 * kPageBytes, "y = 1");
  save(live, guest);
  must(object_->transact([&](storage::Transaction& transaction) {
    return transaction.erase(Options().packs_table, std::string("\0\0\0\1\0\0\0\1\0\0\0\1", 12));
  }));
  ASSERT_EQ(first, (PackId{1, 1}));
  const auto restored = try_load("c");
  ASSERT_FALSE(restored.ok());
  EXPECT_EQ(restored.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(restored.error().message, HasSubstr("snapshot pack 1.1: missing"));
}

TEST_F(SnapshotStoreTest, ImageOfAnotherContentIsNoticed) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  guest.write(kPageBytes, "x = 1");
  save(live, guest);
  image_[kPageBytes + 1000] ^= std::byte{1};
  const auto restored = try_load("c");
  ASSERT_FALSE(restored.ok());
  EXPECT_THAT(restored.error().message,
              HasSubstr("page 1 of the memory cannot be restored: its content"));
}

TEST_F(SnapshotStoreTest, DamageKeepsWhatIsOlderAndStopsNothingElse) {
  restart({.history = {.full = 10, .every = 10}});
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  const auto save_some = [&](int count, std::string_view tables) {
    for (int i = 0; i < count; ++i) {
      guest.write(5000, "x = " + std::to_string(++written_));
      save(live, guest, tables);
    }
  };
  save_some(128, "tables");
  damage_packs([](std::string_view key) { return pack_of_key(key).has_value(); });
  save_some(10, "tables written anew");
  const auto stats = must(store_->stats());
  EXPECT_THAT(stats.damage, HasSubstr("checksum mismatch"));
  EXPECT_GE(stats.packs, 128U) << "in doubt nothing is deleted";
  save_some(800, "tables written anew");
  EXPECT_EQ(load("c").guest.memory(), guest.memory());
  EXPECT_LT(must(store_->stats()).packs, 320U);
  restart({.history = {.full = 10, .every = 0}});
  must(store_->collect());
  EXPECT_EQ(must(store_->stats()).damage, "") << "once nothing needs the damaged ones";
  EXPECT_LT(must(store_->stats()).packs, 50U);
  EXPECT_EQ(load("c").guest.memory(), guest.memory());
}

TEST_F(SnapshotStoreTest, DamagedRowsOfTheHistoryAreToldAndNothingElseIsLost) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  for (int i = 0; i < 20; ++i) {
    guest.write(5000, "x = " + std::to_string(i));
    save(live, guest);
  }
  damage_packs([](std::string_view key) {
    return version_of_key(key).value_or(PackId{1, 9}).sequence < 5;
  });
  restart({});
  EXPECT_EQ(must(store_->history("c")).size(), 17U) << "those that cannot be read are one";
  EXPECT_EQ(load("c").guest.memory(), guest.memory());
  must(store_->undo("c", 10, 0));
  must(store_->collect());
  EXPECT_THAT(must(store_->stats()).damage, HasSubstr("checksum mismatch"));
  EXPECT_EQ(must(store_->latest("c")).step, 10U);
}

}  // namespace
}  // namespace sw::snapshot
