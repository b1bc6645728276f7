// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/snapshot_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "snapshot/page.h"
#include "snapshot/test_guest.h"
#include "storage/memory/memory_storage.h"

namespace sw::snapshot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SnapshotStoreTest : public testing::Test {
 protected:
  SnapshotStoreTest() { restart({}); }

  /// Another process opens what is stored.
  void restart(const Options& options) {
    store_.reset();
    object_.reset();
    storage_ = storage::open_memory_storage(disk_);
    object_ = must(storage_->open({"interpreter", "i1"}, {}));
    store_ = must(SnapshotStore::open(*object_, options));
  }

  SaveStats save(LiveMemory& live, Guest& guest, std::string_view tables = "tables") {
    const auto ranges = guest.dirty();
    return must(store_->save(live, {.memory = SpanPageSource(guest.memory()),
                                    .image = image_,
                                    .changed = ranges,
                                    .host_tables = as_bytes(tables),
                                    .time_ms = ++time_}));
  }
  Result<SaveStats> try_save(LiveMemory& live, Guest& guest, const ExtraWrites& extra_writes = {}) {
    const auto ranges = guest.dirty();
    return store_->save(live,
                        {.memory = SpanPageSource(guest.memory()),
                         .image = image_,
                         .changed = ranges,
                         .host_tables = {},
                         .time_ms = ++time_},
                        extra_writes);
  }

  struct Loaded {
    Guest guest;
    Restored restored;
  };
  Result<Loaded> try_load(std::string_view context, std::optional<VersionId> version = {}) {
    SW_TRY(const VersionInfo newest, store_->latest(context));
    VersionInfo info = newest;
    if (version) {
      SW_TRY(const auto versions, store_->versions(context));
      for (const VersionInfo& candidate : versions) {
        if (candidate.id == *version) info = candidate;
      }
    }
    Guest guest(image_);
    guest.grow_to(info.memory_bytes);
    SW_TRY(Restored restored, restore_into(*store_, context, version.value_or(newest.id), kBuild,
                                           image_, guest.memory()));
    guest.mark_all();
    return Loaded{std::move(guest), std::move(restored)};
  }
  Loaded load(std::string_view context, std::optional<VersionId> version = {}) {
    return must(try_load(context, version));
  }

  std::size_t pack_count() { return must(store_->stats()).packs; }

  /// Changes one byte of each row of the packs table that `chosen` names.
  void damage_packs(const std::function<bool(std::string_view key)>& chosen) {
    must(object_->transact([&](storage::Transaction& transaction) -> Result<void> {
      std::vector<std::pair<std::string, Bytes>> rows;
      SW_CHECK_OK(transaction.scan({.table = Options().packs_table, .from = {}, .to = {}},
                                   storage::Order::kAscending,
                                   [&](std::string_view key, BytesView value) {
                                     rows.emplace_back(key, Bytes(value.begin(), value.end()));
                                     return Result<storage::Scan>(storage::Scan::kContinue);
                                   }));
      for (auto& [key, value] : rows) {
        if (!chosen(key)) continue;
        value[value.size() / 2] ^= std::byte{1};
        SW_CHECK_OK(transaction.put(Options().packs_table, key, value));
      }
      return {};
    }));
  }

  storage::MemoryDisk disk_{storage::Bodies::kTwice};
  std::unique_ptr<storage::Storage> storage_;
  std::unique_ptr<storage::ObjectStorage> object_;
  std::unique_ptr<SnapshotStore> store_;
  Bytes image_ = make_image(64);
  std::int64_t time_ = 1000;
};

TEST_F(SnapshotStoreTest, MemoryAndTablesComeBackInAnotherProcess) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  guest.write(5000, "x = 1");
  guest.write(100000, std::string(9000, 'y'));
  save(live, guest, "descriptors");
  restart({});
  Loaded loaded = load("c");
  EXPECT_EQ(loaded.guest.memory(), guest.memory());
  EXPECT_EQ(as_text(loaded.restored.host_tables), "descriptors");
}

TEST_F(SnapshotStoreTest, HostTablesComeBackAndAreWrittenOnlyWhenTheyChange) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  std::mt19937 random(1);
  std::string noise(50000, ' ');
  for (char& c : noise) c = static_cast<char>(random());
  save(live, guest, noise);
  EXPECT_LT(save(live, guest, noise).bytes_written, 500U);
  restart({});
  EXPECT_EQ(as_text(load("c").restored.host_tables), noise);
}

TEST_F(SnapshotStoreTest, PagesEqualToWhatIsStoredAreNotWritten) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  guest.mark_all();
  EXPECT_EQ(save(live, guest).pages_changed, 0U);
  guest.write(5000, "x = 1");
  EXPECT_EQ(save(live, guest).pages_changed, 1U);
  const SaveStats again = save(live, guest);
  EXPECT_EQ(again.pages_seen, 64U);
  EXPECT_EQ(again.pages_changed, 0U);
  EXPECT_LT(again.bytes_written, 200U);
}

TEST_F(SnapshotStoreTest, PageThatIsAsInTheImageAgainIsForgotten) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  const std::string before(as_text(BytesView(image_).subspan(5000, 5)));
  guest.write(5000, "x = 1");
  save(live, guest);
  EXPECT_EQ(live.stored_pages(), 1U);
  guest.write(5000, before);
  save(live, guest);
  EXPECT_EQ(live.stored_pages(), 0U);
  EXPECT_EQ(load("c").guest.memory(), image_);
}

TEST_F(SnapshotStoreTest, MemoryGrowsAndItsNewPagesGoBackToZero) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  guest.grow_to(80 * kPageBytes);
  save(live, guest);
  guest.write(70 * kPageBytes, "new");
  save(live, guest);
  guest.write(79 * kPageBytes + 4000, "end");
  save(live, guest);
  EXPECT_EQ(load("c").guest.memory(), guest.memory());
  guest.write(70 * kPageBytes, std::string(3, '\0'));
  save(live, guest);
  EXPECT_EQ(live.stored_pages(), 1U);
  EXPECT_EQ(load("c").guest.memory(), guest.memory());
}

TEST_F(SnapshotStoreTest, RestoredMemoryIsSavedOn) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  guest.write(5000, "x = 1");
  save(live, guest);
  for (int i = 0; i < 50; ++i) {
    restart({});
    Loaded loaded = load("c");
    loaded.guest.write(5004, std::to_string(i));
    EXPECT_EQ(save(loaded.restored.live, loaded.guest).pages_changed, 1U);
    guest.write(5004, std::to_string(i));
    ASSERT_EQ(load("c").guest.memory(), guest.memory());
  }
}

TEST_F(SnapshotStoreTest, SmallStepAfterALargeOneIsSmall) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  std::mt19937 random(2);
  std::string noise(600 * kPageBytes, ' ');
  for (char& c : noise) c = static_cast<char>(random());
  guest.grow_to(700 * kPageBytes);
  guest.write(64 * kPageBytes, noise);
  EXPECT_GT(save(live, guest).bytes_written, noise.size());
  guest.write(64 * kPageBytes + 77, "x");
  EXPECT_LT(save(live, guest).bytes_written, 300U);
  restart({});
  Loaded loaded = load("c");
  EXPECT_EQ(loaded.guest.memory(), guest.memory());
  loaded.guest.write(64 * kPageBytes + 77, "y");
  // The page's stored content is not at hand after so large a restore, perhaps; then it is written
  // whole.
  EXPECT_LT(save(loaded.restored.live, loaded.guest).bytes_written, 5000U);
}

TEST_F(SnapshotStoreTest, AnotherBuildOrSizeIsRefused) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  save(live, guest);
  const VersionInfo newest = must(store_->latest("c"));
  EXPECT_EQ(newest.build, kBuild);
  const auto other_build = restore_into(*store_, "c", newest.id, "build-2", image_, guest.memory());
  ASSERT_FALSE(other_build.ok());
  EXPECT_EQ(other_build.error().code, ErrorCode::kInvalidArgument);
  Bytes small(kPageBytes);
  EXPECT_EQ(restore_into(*store_, "c", newest.id, kBuild, image_, small).error().code,
            ErrorCode::kInvalidArgument);
}

TEST_F(SnapshotStoreTest, FreshMemoryReplacesAnOldBuildsAndCanBeUndone) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  guest.write(5000, "x = 1");
  const VersionId first = save(live, guest).version;
  LiveMemory fresh = must(store_->begin("c", "build-2"));
  EXPECT_EQ(must(store_->latest("c")).id, first) << "begin writes nothing";
  Guest fresh_guest(image_);
  save(fresh, fresh_guest);
  EXPECT_EQ(must(store_->latest("c")).build, "build-2");
  EXPECT_EQ(must(store_->undo("c", 1, 0)).build, kBuild);
  EXPECT_EQ(load("c").guest.memory(), guest.memory());
}

TEST_F(SnapshotStoreTest, MemoryThatTheContextWentOnWithoutIsRefused) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  save(live, guest);
  Loaded other = load("c");
  other.guest.write(0, "other");
  save(other.restored.live, other.guest);
  const auto late = try_save(live, guest);
  ASSERT_FALSE(late.ok());
  EXPECT_THAT(late.error().message, HasSubstr("has advanced past this memory"));
  must(store_->undo("c", 1, 0));
  EXPECT_FALSE(try_save(other.restored.live, other.guest).ok());
}

TEST_F(SnapshotStoreTest, RangesThatOverlapAreRefused) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  const std::vector<ByteRange> ranges = {{0, 8192}, {4096, 8192}};
  EXPECT_EQ(store_
                ->save(live, {.memory = SpanPageSource(guest.memory()),
                              .image = image_,
                              .changed = ranges,
                              .host_tables = {}})
                .error()
                .code,
            ErrorCode::kInvalidArgument);
}

TEST_F(SnapshotStoreTest, RangesNeedNotBeginAtPages) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  guest.write(4090, "across two pages");
  const std::vector<ByteRange> ranges = {{4090, 4095}, {4097, 4100}};
  must(store_->save(live, {.memory = SpanPageSource(guest.memory()),
                           .image = image_,
                           .changed = ranges,
                           .host_tables = {}}));
  EXPECT_EQ(load("c").guest.memory(), guest.memory());
}

// ------------------------------------------------------------------ undo, checkpoints, forks

TEST_F(SnapshotStoreTest, UndoGoesBackAndFurtherBack) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  std::vector<Bytes> memories;
  for (int i = 0; i < 6; ++i) {
    guest.write(5000, "x = " + std::to_string(i));
    save(live, guest, "tables " + std::to_string(i));
    memories.push_back(guest.memory());
  }
  must(store_->undo("c", 1, 0));
  EXPECT_EQ(load("c").guest.memory(), memories[4]);
  EXPECT_EQ(as_text(load("c").restored.host_tables), "tables 4");
  must(store_->undo("c", 2, 0));
  EXPECT_EQ(load("c").guest.memory(), memories[2]);
  EXPECT_EQ(must(store_->latest("c")).history, 2U);
  EXPECT_FALSE(store_->undo("c", 3, 0).ok());
  must(store_->undo("c", 2, 0));
  EXPECT_EQ(load("c").guest.memory(), memories[0]);
  EXPECT_FALSE(store_->undo("c", 1, 0).ok());
}

TEST_F(SnapshotStoreTest, UndoReachesAsFarAsTheOptionsSay) {
  restart({.history_max = 3});
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  for (int i = 0; i < 8; ++i) {
    guest.write(5000, "x = " + std::to_string(i));
    save(live, guest);
  }
  EXPECT_EQ(must(store_->versions("c")).size(), 4U);
  EXPECT_EQ(store_->undo("c", 4, 0).error().code, ErrorCode::kInvalidArgument);
  must(store_->undo("c", 3, 0));
  EXPECT_EQ(must(store_->versions("c")).size(), 1U)
      << "what was beyond the limit may be gone and stays unreachable";
}

TEST_F(SnapshotStoreTest, OlderVersionCanBeLookedAtAndIsTheNewestAfterRewind) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  guest.write(5000, "one");
  const VersionId one = save(live, guest).version;
  const Bytes memory = guest.memory();
  guest.write(5000, "two");
  save(live, guest);
  Loaded old = load("c", one);
  EXPECT_EQ(old.guest.memory(), memory);
  EXPECT_FALSE(try_save(old.restored.live, old.guest).ok());
  must(store_->rewind("c", one, 0));
  EXPECT_EQ(load("c").guest.memory(), memory);
  must(store_->undo("c", 1, 0));
  EXPECT_EQ(load("c").guest.memory(), guest.memory()) << "going back can be undone";
}

TEST_F(SnapshotStoreTest, CheckpointOutlastsTheHistory) {
  restart({.history_max = 2});
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  guest.write(5000, "kept");
  const VersionId version = save(live, guest).version;
  const Bytes memory = guest.memory();
  must(store_->add_checkpoint("c", "before", 77));
  EXPECT_EQ(store_->add_checkpoint("c", "before", 78).error().code, ErrorCode::kInvalidArgument);
  for (int i = 0; i < 100; ++i) {
    guest.write(5000 + static_cast<std::size_t>(i) * 500, "step " + std::to_string(i));
    save(live, guest);
  }
  must(store_->collect());
  restart({.history_max = 2});
  const auto checkpoints = must(store_->checkpoints("c"));
  ASSERT_EQ(checkpoints.size(), 1U);
  EXPECT_EQ(checkpoints[0].label, "before");
  EXPECT_EQ(checkpoints[0].version, version);
  EXPECT_EQ(checkpoints[0].time_ms, 77);
  must(store_->rewind("c", version, 0));
  EXPECT_EQ(load("c").guest.memory(), memory);
  must(store_->remove_checkpoint("c", "before"));
  EXPECT_EQ(store_->remove_checkpoint("c", "before").error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(must(store_->checkpoints("c")).empty());
}

TEST_F(SnapshotStoreTest, CheckpointsAreLimited) {
  restart({.checkpoints_max = 2});
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  save(live, guest);
  must(store_->add_checkpoint("c", "1", 0));
  must(store_->add_checkpoint("c", "2", 0));
  EXPECT_EQ(store_->add_checkpoint("c", "3", 0).error().code, ErrorCode::kLimitExceeded);
}

TEST_F(SnapshotStoreTest, ForkGoesItsOwnWay) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  guest.write(5000, "shared");
  save(live, guest, "tables of both");
  must(store_->fork("c", {}, "f", 0));
  Loaded forked = load("f");
  EXPECT_EQ(forked.guest.memory(), guest.memory());
  EXPECT_EQ(as_text(forked.restored.host_tables), "tables of both");
  forked.guest.write(5000, "forked");
  guest.write(6000, "source");
  save(forked.restored.live, forked.guest);
  save(live, guest);
  restart({});
  EXPECT_EQ(load("f").guest.memory(), forked.guest.memory());
  EXPECT_EQ(load("c").guest.memory(), guest.memory());
  EXPECT_EQ(store_->fork("c", {}, "f", 0).error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(store_->contexts(), ElementsAre("c", "f"));
}

TEST_F(SnapshotStoreTest, ForkCopiesNoPages) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  std::mt19937 random(2);
  std::string noise(500 * kPageBytes, ' ');
  for (char& c : noise) c = static_cast<char>(random());
  guest.grow_to(600 * kPageBytes);
  guest.write(0, noise);
  save(live, guest);
  const auto before = must(store_->stats());
  must(store_->fork("c", {}, "f", 0));
  must(store_->undo("f", 0, 0));
  must(store_->add_checkpoint("f", "here", 0));
  EXPECT_LT(must(store_->stats()).pack_bytes, before.pack_bytes + 500);
}

TEST_F(SnapshotStoreTest, UsageSaysWhatAContextWrote) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  guest.write(5000, "shared");
  const SaveStats saved = save(live, guest);
  EXPECT_EQ(must(store_->latest("c")).pages, 1U);
  EXPECT_EQ(must(store_->usage("c")).packs, 1U);
  EXPECT_EQ(must(store_->usage("c")).bytes, saved.bytes_written);
  must(store_->fork("c", {}, "f", 0));
  EXPECT_LT(must(store_->usage("f")).bytes, 200U);
  EXPECT_EQ(must(store_->usage("c")).bytes, saved.bytes_written);
  EXPECT_EQ(store_->usage("d").error().code, ErrorCode::kNotFound);
}

TEST_F(SnapshotStoreTest, ForkAtAnEarlierVersionKeepsItsHistory) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  guest.write(5000, "one");
  save(live, guest);
  const Bytes one = guest.memory();
  guest.write(5000, "two");
  const VersionId two = save(live, guest).version;
  const Bytes memory = guest.memory();
  guest.write(5000, "three");
  save(live, guest);
  must(store_->fork("c", two, "f", 0));
  EXPECT_EQ(load("f").guest.memory(), memory);
  must(store_->undo("f", 1, 0));
  EXPECT_EQ(load("f").guest.memory(), one);
}

TEST_F(SnapshotStoreTest, VersionsThatNoneKeepsAreNotFound) {
  restart({.history_max = 1});
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  const VersionId first = save(live, guest).version;
  save(live, guest);
  save(live, guest);
  EXPECT_EQ(store_->rewind("c", first, 0).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(store_->fork("c", first, "f", 0).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(restore_into(*store_, "c", first, kBuild, image_, guest.memory()).error().code,
            ErrorCode::kNotFound);
  EXPECT_EQ(store_->latest("d").error().code, ErrorCode::kNotFound);
}

// -------------------------------------------------------------------------- deletion, garbage

TEST_F(SnapshotStoreTest, RemovedContextLeavesNothing) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  guest.write(5000, "secret");
  save(live, guest);
  must(store_->add_checkpoint("c", "here", 0));
  must(store_->remove("c"));
  EXPECT_EQ(pack_count(), 0U);
  EXPECT_FALSE(store_->has("c"));
  EXPECT_EQ(store_->remove("c").error().code, ErrorCode::kNotFound);
  restart({});
  EXPECT_TRUE(store_->contexts().empty());
  LiveMemory again = must(store_->begin("c", kBuild));
  Guest fresh(image_);
  save(again, fresh);
  EXPECT_EQ(load("c").guest.memory(), image_);
}

TEST_F(SnapshotStoreTest, RemovedSourceOfAForkLeavesOnlyWhatTheForkNeeds) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  guest.write(5000, "shared");
  save(live, guest);
  must(store_->fork("c", {}, "f", 0));
  for (int i = 0; i < 20; ++i) {
    guest.write(9000, "only the source's " + std::to_string(i));
    save(live, guest);
  }
  const Bytes shared = load("f").guest.memory();
  must(store_->remove("c"));
  EXPECT_EQ(pack_count(), 2U);
  EXPECT_EQ(load("f").guest.memory(), shared);
  must(store_->remove("f"));
  EXPECT_EQ(pack_count(), 0U);
}

TEST_F(SnapshotStoreTest, GarbageIsCollectedWhileSaving) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  std::size_t most = 0;
  for (int i = 0; i < 1000; ++i) {
    guest.write(5000, "x = " + std::to_string(i));
    guest.write(20 * kPageBytes, "y = " + std::to_string(i * i));
    save(live, guest);
    most = std::max(most, pack_count());
  }
  EXPECT_GT(must(store_->stats()).collections, 5U);
  EXPECT_LT(most, 200U);
  EXPECT_EQ(load("c").guest.memory(), guest.memory());
  must(store_->collect());
  EXPECT_LT(pack_count(), 60U);
  EXPECT_EQ(load("c").guest.memory(), guest.memory());
}

TEST_F(SnapshotStoreTest, RestoreReadsFewPacksAfterManyScatteredSteps) {
  image_ = make_image(2000);
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  for (std::size_t i = 0; i < 2000; ++i) {
    guest.write(i * kPageBytes + 10, "once");
    guest.write(5, std::to_string(i));
    const auto ranges = std::vector<ByteRange>{{0, 10}, {i * kPageBytes + 10, i * kPageBytes + 14}};
    must(store_->save(live, {.memory = SpanPageSource(guest.memory()),
                             .image = image_,
                             .changed = i == 0 ? std::span(ranges).first(1) : std::span(ranges),
                             .host_tables = {}}));
  }
  const Loaded loaded = load("c");
  EXPECT_LT(loaded.restored.packs_read, 110U);
}

TEST_F(SnapshotStoreTest, LargePackWithFewNeededPagesIsPruned) {
  restart({.history_max = 0, .collect_while_saving = false});
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  std::mt19937 random(3);
  const auto noise = [&](std::size_t pages) {
    std::string text(pages * kPageBytes, ' ');
    for (char& c : text) c = static_cast<char>(random());
    return text;
  };
  guest.grow_to(400 * kPageBytes);
  guest.write(100 * kPageBytes, noise(200));
  save(live, guest);
  guest.write(100 * kPageBytes, noise(190));
  save(live, guest);
  const std::uint64_t before = must(store_->stats()).pack_bytes;
  must(store_->collect());
  EXPECT_LT(must(store_->stats()).pack_bytes, before - 150 * kPageBytes);
  EXPECT_EQ(load("c").guest.memory(), guest.memory());
}

// ------------------------------------------------------------------------------------- faults

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

TEST_F(SnapshotStoreTest, DamageStopsTheCollectionAndNotTheContext) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  for (int i = 0; i < 40; ++i) {
    guest.write(5000, "x = " + std::to_string(i));
    save(live, guest);
    if (i == 31) damage_packs([](std::string_view) { return true; });
  }
  const auto stats = must(store_->stats());
  EXPECT_THAT(stats.collection_error, HasSubstr("checksum mismatch"));
  EXPECT_EQ(stats.collections, 0U);
  EXPECT_EQ(stats.packs, 40U) << "in doubt nothing is deleted";
  for (int i = 0; i < 200; ++i) {
    guest.write(5000, "x = " + std::to_string(i));
    save(live, guest, "tables written anew");
  }
  EXPECT_EQ(must(store_->stats()).collection_error, "") << "once nothing needs the damaged ones";
  EXPECT_LT(must(store_->stats()).packs, 200U);
  EXPECT_EQ(load("c").guest.memory(), guest.memory());
}

}  // namespace
}  // namespace sw::snapshot
