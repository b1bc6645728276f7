// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/old_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "snapshot/snapshot_store_fixture.h"

namespace sw::snapshot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// What a store held that kept 20 runs for undo. Context "c" saved 30 steps, with a checkpoint of
/// the third, "early", and took the last two back; "f" is a fork of it after step 20. Each step i
/// wrote "step i " to byte 5000 and to byte 100 of page i % 8.
class OldHistoryTest : public SnapshotStoreTest {
 protected:
  OldHistoryTest() {
    image_ = make_image(8);
    const auto rows = must(read_file(SW_SNAPSHOT_OLD_ROWS));
    must(object_->transact([&](storage::Transaction& transaction) -> Result<void> {
      for (BytesView left = rows; !left.empty();) {
        std::uint32_t head[3];
        std::memcpy(head, left.data(), sizeof head);
        left = left.subspan(sizeof head);
        const std::string_view key = as_text(left.first(head[1]));
        SW_CHECK_OK(transaction.put(static_cast<storage::TableId>(head[0]), key,
                                    left.subspan(head[1], head[2])));
        left = left.subspan(head[1] + head[2]);
      }
      return {};
    }));
  }

  void convert() {
    must(object_->transact([&](storage::Transaction& transaction) {
      return add_histories(transaction, {}, [](storage::Reader&, std::string_view context) {
        return Result<std::uint64_t>(context == "c" ? 30U : 20U);
      });
    }));
    restart({});
  }

  std::vector<std::uint64_t> steps(std::string_view context) {
    std::vector<std::uint64_t> steps;
    for (const HistoryEntry& entry : must(store_->history(context))) steps.push_back(entry.step);
    return steps;
  }

  static Bytes memory_after(int step) {
    Bytes memory = make_image(8);
    for (int i = 1; i <= step; ++i) {
      const std::string text = "step " + std::to_string(i) + " ";
      for (const std::size_t at : {std::size_t{5000}, static_cast<std::size_t>(i % 8) * 4096 + 100})
        std::ranges::copy(as_bytes(text), memory.begin() + static_cast<std::ptrdiff_t>(at));
    }
    return memory;
  }
};

TEST_F(OldHistoryTest, VersionsThatUndoReachedAreInTheHistory) {
  convert();
  EXPECT_EQ(load("c").guest.memory(), memory_after(28));
  const auto history = must(store_->history("c"));
  ASSERT_EQ(history.size(), 20U);  // undo counted as a step, and shortened what it could reach
  EXPECT_EQ(history.back().step, 30U);
  EXPECT_TRUE(history.back().newest);
  EXPECT_THAT(history.front().checkpoints, ElementsAre("early"));
  EXPECT_EQ(load("c", history.front().version).guest.memory(), memory_after(3));
  for (std::size_t i = 1; i + 1 < history.size(); ++i) {
    EXPECT_EQ(load("c", history[i].version).guest.memory(), memory_after(static_cast<int>(i) + 9));
    EXPECT_THAT(history[i].checkpoints, IsEmpty());
  }
  EXPECT_EQ(steps("f").size(), 20U);
  EXPECT_EQ(load("f").guest.memory(), memory_after(20));
}

TEST_F(OldHistoryTest, UndoAndSavesGoOn) {
  convert();
  Loaded loaded = load("c");
  for (int i = 0; i < 30; ++i) {
    loaded.guest.write(20000, "new " + std::to_string(i));
    save(loaded.restored.live, loaded.guest);
  }
  EXPECT_EQ(must(store_->latest("c")).step, 60U);
  must(store_->collect());
  restart({});
  EXPECT_EQ(load("c").guest.memory(), loaded.guest.memory());
  must(store_->undo("c", 31, 0));
  EXPECT_EQ(load("c").guest.memory(), memory_after(27));
  must(store_->rewind("c", must(store_->checkpoints("c"))[0].version, 0));
  EXPECT_EQ(load("c").guest.memory(), memory_after(3));
  must(store_->undo("f", 5, 0));
  EXPECT_EQ(load("f").guest.memory(), memory_after(15));
}

TEST_F(OldHistoryTest, HistoriesAreMadeOnce) {
  convert();
  const auto before = steps("c");
  convert();
  EXPECT_EQ(steps("c"), before);
}

TEST_F(OldHistoryTest, DamagedVersionEndsTheHistoryAndNothingElse) {
  int seen = 0;
  damage_packs([&](std::string_view) { return ++seen == 20; });
  convert();
  EXPECT_FALSE(steps("c").empty());
  EXPECT_FALSE(steps("f").empty());
}

TEST_F(OldHistoryTest, WithoutRowsOfTheHistoryTheNewestVersionIsAllThereIs) {
  restart({});
  EXPECT_EQ(load("c").guest.memory(), memory_after(28));
  EXPECT_EQ(steps("c").size(), 1U);
}

}  // namespace
}  // namespace sw::snapshot
