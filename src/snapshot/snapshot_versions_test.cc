// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Undo, checkpoints and forks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "snapshot/page.h"
#include "snapshot/snapshot_store_fixture.h"

namespace sw::snapshot {
namespace {

using ::testing::ElementsAre;

std::string random_bytes(std::mt19937& random) {
  std::string bytes(4096, ' ');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

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
  EXPECT_EQ(must(store_->latest("c")).step, 3U);
  EXPECT_FALSE(store_->undo("c", 3, 0).ok());
  must(store_->undo("c", 2, 0));
  EXPECT_EQ(load("c").guest.memory(), memories[0]);
  EXPECT_FALSE(store_->undo("c", 1, 0).ok());
}

TEST_F(SnapshotStoreTest, UndoRefusesToGoPastStepsThatAreGoneAndSaysWhichAreKept) {
  restart({.history = {.full = 3, .every = 4}});
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  for (int i = 0; i < 12; ++i) {
    guest.write(5000, "x = " + std::to_string(i));
    save(live, guest);
  }
  must(store_->collect());
  const auto refused = store_->undo("c", 4, 0);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused.error().message,
            "cannot undo 4 runs; at most 2 can be. Steps that are kept: 1, 4, 8, 10 to 12");
  EXPECT_EQ(must(store_->undo("c", 2, 0)).step, 10U);
}

TEST_F(SnapshotStoreTest, AForgottenHistoryLeavesTheNewestVersionAndCheckpoints) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  std::vector<Bytes> memories;
  std::mt19937 random(1);
  for (int i = 0; i < 40; ++i) {
    for (std::size_t page = 0; page < 4; ++page) guest.write(page * 4096, random_bytes(random));
    save(live, guest);
    memories.push_back(guest.memory());
    if (i == 9) must(store_->add_checkpoint("c", "ten", 0));
  }
  const auto before = must(store_->usage("c")).bytes;
  must(store_->forget_history("c"));
  for (int times = 0; times < 2; ++times) {
    std::vector<std::uint64_t> steps;
    for (const HistoryEntry& entry : must(store_->history("c"))) steps.push_back(entry.step);
    EXPECT_THAT(steps, ElementsAre(10, 40));
    EXPECT_EQ(load("c").guest.memory(), memories[39]);
    EXPECT_FALSE(store_->undo("c", 1, 0).ok());
    restart({});
  }
  EXPECT_LT(must(store_->usage("c")).bytes * 5, before);
  must(store_->rewind("c", must(store_->checkpoints("c"))[0].version, 0));
  EXPECT_EQ(load("c").guest.memory(), memories[9]);
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
  restart({.history = {.full = 2, .every = 0}});
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
  restart({.history = {.full = 2, .every = 0}});
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
  restart({.history = {.full = 1, .every = 0}});
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  const VersionId first = save(live, guest).version;
  save(live, guest);
  save(live, guest);
  must(store_->collect());
  EXPECT_EQ(store_->rewind("c", first, 0).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(store_->fork("c", first, "f", 0).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(restore_into(*store_, "c", first, kBuild, image_, guest.memory()).error().code,
            ErrorCode::kNotFound);
  EXPECT_EQ(store_->latest("d").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace sw::snapshot
