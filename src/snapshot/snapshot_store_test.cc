// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/snapshot_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "snapshot/page.h"
#include "snapshot/snapshot_store_fixture.h"

namespace sw::snapshot {
namespace {

using ::testing::HasSubstr;

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
  guest.mark_all();
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
  EXPECT_EQ(live.encode({.memory = SpanPageSource(guest.memory()),
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
  must(store_->save(live, must(live.encode({.memory = SpanPageSource(guest.memory()),
                                            .image = image_,
                                            .changed = ranges,
                                            .host_tables = {}}))));
  EXPECT_EQ(load("c").guest.memory(), guest.memory());
}

}  // namespace
}  // namespace sw::snapshot
