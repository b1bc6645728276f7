// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What is deleted, and what is collected.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "snapshot/page.h"
#include "snapshot/snapshot_store_fixture.h"

namespace sw::snapshot {
namespace {

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
  restart({.history = {.full = 20, .every = 0}});
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
  restart({.history = {.full = 0, .every = 0}, .collect_while_saving = false});
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
  save(live, guest);
  const std::uint64_t before = must(store_->stats()).pack_bytes;
  must(store_->collect());
  EXPECT_LT(must(store_->stats()).pack_bytes, before - 150 * kPageBytes);
  EXPECT_EQ(load("c").guest.memory(), guest.memory());
}

}  // namespace
}  // namespace sw::snapshot
