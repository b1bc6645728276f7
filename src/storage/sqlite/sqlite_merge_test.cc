// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Merging layers in a data folder: crashes, damage, full disks, backups.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <random>

#include "storage/merge_fixture.h"
#include "storage/sqlite/check.h"
#include "storage/sqlite/faulty_disk.h"
#include "storage/sqlite/sqlite_fixture.h"

namespace sw::storage {
namespace {

namespace fs = std::filesystem;

const ObjectName kMain{"o", "main"};
const ObjectName kKept{"c", "kept"};

/// A row of its own, one that all write, and one that is erased again.
Result<void> write_step(Storage& storage, int step) {
  SW_TRY(auto object, storage.open(kMain, {}));
  return object->transact([&](Transaction& transaction) -> Result<void> {
    const std::string number = std::to_string(step);
    SW_CHECK_OK(transaction.put(1, "own " + number, as_bytes(number)));
    SW_CHECK_OK(transaction.put(1, "all", as_bytes(number)));
    SW_CHECK_OK(transaction.put(2, "short " + number, Bytes(100)));
    return transaction.erase(2, "short " + std::to_string(step - 1));
  });
}

/// Of an object whose last step that was; empty: it is not one.
std::string picture(int step) {
  if (step < 0) return {};
  std::vector<std::string> keys;
  for (int i = 0; i <= step; ++i) keys.push_back("own " + std::to_string(i));
  std::ranges::sort(keys);
  std::string text = "all=" + std::to_string(step) + " ";
  for (const std::string& key : keys) text += key + "=" + key.substr(4) + " ";
  return text + "short " + std::to_string(step) + " ";
}

std::string look(Storage& storage, const ObjectName& name) {
  std::string text;
  auto object = *storage.open(name, {});
  const auto read = object->read([&](Reader& reader) -> Result<void> {
    SW_CHECK_OK(
        reader.scan({1, "", ""}, Order::kAscending, [&](std::string_view key, BytesView value) {
          text += std::string(key) + "=" + std::string(as_text(value)) + " ";
          return Result<Scan>(Scan::kContinue);
        }));
    return reader.scan_keys({2, "", ""}, Order::kAscending, [&](std::string_view key, std::size_t) {
      text += std::string(key) + " ";
      return Result<Scan>(Scan::kContinue);
    });
  });
  EXPECT_TRUE(read.ok()) << read.error().message;
  return text;
}

std::vector<std::string> problems_of(const fs::path& folder) {
  const auto checked = check_data_folder(folder);
  EXPECT_TRUE(checked.ok()) << checked.error().message;
  return checked.ok() ? checked->problems : std::vector<std::string>();
}

class CrashDuringMerges : public testing::TestWithParam<Ending> {};

// Moments are chosen at random, as the merges go on beside the steps.
TEST_P(CrashDuringMerges, LoseNothingAndLeaveNoLayers) {
  constexpr int kSteps = 24;
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int merged = 0;
  for (int round = 0; round < 25 && !testing::Test::HasFailure(); ++round) {
    const std::uint64_t fault = 1 + random() % 3000;
    SCOPED_TRACE("fault at change " + std::to_string(fault));
    const TemporaryDirectory folder = temporary();
    FaultyDisk disk;
    disk.fail_from(fault);
    const SqliteOptions options{.idle_open_max = 2,
                                .vfs = disk.name(),
                                .journal_bytes_max = 3000,
                                .journal_bytes_left = random() % 2 == 0 ? 0U : 1U << 20U};
    int written = -1;
    int kept = -1;
    {
      auto storage = open_sqlite_storage(folder.path(), options);
      while (storage.ok() && written < kSteps && write_step(**storage, written + 1).ok()) {
        ++written;
        if (!checkpoint(**storage, kMain, kKept).ok()) break;
        kept = written;
        // Half of the time merges keep up, else they are interrupted by the end.
        if (random() % 2 == 0) {
          EXPECT_TRUE(eventually(
              [&] { return disk.failing() || depth_of(**storage, kMain) <= kShallowStack; }));
        }
      }
    }
    end(disk, GetParam(), random);
    disk.fail_from(1'000'000);
    disk.set_syncs(FaultyDisk::Syncs::kSkipped);
    {
      const auto storage = open_storage(folder.path(), {.vfs = disk.name()});
      ASSERT_TRUE(storage);
      merged += written > 10 && depth_of(*storage, kMain) <= kShallowStack ? 1 : 0;
      EXPECT_THAT(look(*storage, kMain), testing::AnyOf(picture(written), picture(written + 1)));
      EXPECT_THAT(look(*storage, kKept), testing::AnyOf(picture(kept), picture(kept + 1)));
      EXPECT_EQ(count_layers(*storage), count_owned_layers(*storage));
      // All goes on from here.
      ASSERT_TRUE(write_step(*storage, 100).ok());
      for (int i = 0; i < 12; ++i) ASSERT_TRUE(checkpoint(*storage, kMain, kKept).ok());
      EXPECT_EQ(*get(*storage, kKept, "own 100"), "100");
    }
    EXPECT_THAT(problems_of(folder.path()), testing::IsEmpty());
  }
  EXPECT_GT(merged, 0);  // else the faults came too early
}

INSTANTIATE_TEST_SUITE_P(Endings, CrashDuringMerges, all_endings(), name_of);

TEST(SqliteMerge, IsTriedAgainAfterADiskThatWasFull) {
  const TemporaryDirectory folder = temporary();
  FaultyDisk disk;
  auto storage = open_storage(folder.path(), {.vfs = disk.name()});
  int step = 0;
  for (; step < static_cast<int>(kShallowStack) - 1; ++step) {
    ASSERT_TRUE(write_step(*storage, step).ok());
    ASSERT_TRUE(checkpoint(*storage, kMain, kKept).ok());
  }
  for (std::uint64_t fault = 1; fault < 40; ++fault, ++step) {
    SCOPED_TRACE("fault at change " + std::to_string(fault));
    if (!write_step(*storage, step).ok()) {
      // After a sync that failed a restart is needed.
      storage.reset();
      storage = open_storage(folder.path(), {.vfs = disk.name()});
      ASSERT_TRUE(write_step(*storage, step).ok());
    }
    disk.fail_from(fault);
    (void)checkpoint(*storage, kMain, kKept);
    EXPECT_TRUE(
        eventually([&] { return disk.failing() || depth_of(*storage, kMain) <= kShallowStack; }));
    disk.fail_from(1'000'000);
    EXPECT_EQ(look(*storage, kMain), picture(step));
  }
  storage.reset();
  storage = open_storage(folder.path(), {.vfs = disk.name()});
  ASSERT_TRUE(checkpoint(*storage, kMain, kKept).ok());
  EXPECT_TRUE(becomes_shallow(*storage, kMain));
  EXPECT_EQ(look(*storage, kMain), picture(step - 1));
  EXPECT_EQ(look(*storage, kKept), picture(step - 1));
  EXPECT_TRUE(eventually([&] { return count_layers(*storage) == count_owned_layers(*storage); }));
}

TEST(SqliteMerge, LeavesADamagedLayerAndThoseBelowItAlone) {
  const TemporaryDirectory folder = temporary();
  std::vector<LayerNumber> layers;
  {
    const auto storage = open_storage(folder.path());
    for (int step = 0; step < 5; ++step) {
      ASSERT_TRUE(write_step(*storage, step).ok());
      ASSERT_TRUE(checkpoint(*storage, kMain, {"c", std::to_string(step)}).ok());
    }
    layers = layers_of(*storage, kMain);
  }
  const auto damaged = static_cast<std::int64_t>(layers[layers.size() - 2]);
  std::ofstream(DataFolder::look_at(folder.path()).object(damaged), std::ios::binary) << "rubbish";
  std::atomic<int> notices{0};
  const auto storage =
      open_storage(folder.path(), {.on_notice = [&](std::string_view) { ++notices; }});
  // The object cannot be used; copies of it can be made all the same, and they share its damage.
  EXPECT_EQ(write_step(*storage, 100).error().code, ErrorCode::kCorrupt);
  const TransactionBody body = [](Transaction& transaction) {
    return transaction.put(1, "new", as_bytes("new"));
  };
  for (int i = 0; i < 40; ++i) {
    const ObjectName from{"d", std::to_string(i - 1)};
    ASSERT_TRUE(storage
                    ->change({.copies = {{.from = i == 0 ? kMain : from,
                                          .to = {"d", std::to_string(i)},
                                          .body = body}}})
                    .ok());
  }
  EXPECT_TRUE(eventually([&] {
    return depth_of(*storage, {"d", "38"}) < 20;
  })) << depth_of(*storage, {"d", "38"});
  const auto last = layers_of(*storage, {"d", "38"});
  EXPECT_TRUE(std::equal(layers.end() - 2, layers.end(), last.end() - 2));
  EXPECT_EQ(notices, 1);
  ASSERT_TRUE(put(*storage, {"o", "other"}, "key", "x").ok());
}

TEST(SqliteMerge, GivesTheSpaceOfErasedRowsBack) {
  const TemporaryDirectory folder = temporary();
  {
    const auto storage = open_storage(folder.path());
    auto object = *storage->open(kMain, {});
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(object
                      ->transact([&](Transaction& transaction) -> Result<void> {
                        SW_CHECK_OK(transaction.erase(1, std::to_string(i - 1)));
                        return transaction.put(1, std::to_string(i), Bytes(200'000, std::byte{1}));
                      })
                      .ok());
      ASSERT_TRUE(checkpoint(*storage, kMain, kKept).ok());
    }
    ASSERT_TRUE(storage->remove(kKept).ok());
    EXPECT_TRUE(becomes_shallow(*storage, kMain));
    EXPECT_TRUE(eventually([&] { return count_layers(*storage) == count_owned_layers(*storage); }));
  }
  std::uintmax_t bytes = 0;
  for (const fs::path& file : object_files(folder.path())) bytes += fs::file_size(file);
  EXPECT_LT(bytes, 20 * 200'000U / 2);
  EXPECT_THAT(problems_of(folder.path()), testing::IsEmpty());
}

TEST(SqliteMerge, BackupsMeanwhileAreWhole) {
  const TemporaryDirectory folder = temporary();
  const auto storage = open_storage(folder.path() / "data", {.journal_bytes_max = 20'000});
  std::atomic<bool> ended = false;
  std::atomic<int> step = 0;
  ASSERT_TRUE(write_step(*storage, step).ok());
  std::thread writer([&] {
    while (step < 150) {
      EXPECT_TRUE(checkpoint(*storage, kMain, kKept).ok());
      const auto written = write_step(*storage, step + 1);
      EXPECT_TRUE(written.ok()) << written.error().message;
      ++step;
    }
    ended = true;
  });
  for (int i = 0; !ended; ++i) {
    const fs::path copy = folder.path() / std::to_string(i);
    const int before = step;
    const auto report = storage->back_up(copy);
    const int after = step + 1;
    EXPECT_TRUE(report.ok()) << report.error().message;
    if (!report.ok()) break;
    EXPECT_THAT(report->damaged, testing::IsEmpty());
    const auto restored = open_storage(copy);
    const std::string all = *get(*restored, kMain, "all");
    EXPECT_GE(std::stoi(all), before);
    EXPECT_LE(std::stoi(all), after);
    // Not EXPECT_EQ: the text is long.
    EXPECT_TRUE(look(*restored, kMain) == picture(std::stoi(all))) << i;
  }
  writer.join();
  EXPECT_TRUE(look(*storage, kMain) == picture(step));
}

TEST(SqliteMerge, ADirectoryThatIsLostIsMadeAnewWithMergedLayers) {
  const TemporaryDirectory folder = temporary();
  {
    const auto storage = open_storage(folder.path());
    for (int step = 0; step < 30; ++step) {
      ASSERT_TRUE(write_step(*storage, step).ok());
      ASSERT_TRUE(checkpoint(*storage, kMain, step < 20 ? kKept : ObjectName{"c", "late"}).ok());
    }
    EXPECT_TRUE(becomes_shallow(*storage, kMain));
    EXPECT_TRUE(eventually([&] { return count_layers(*storage) == count_owned_layers(*storage); }));
  }
  ASSERT_TRUE(fs::remove(folder.path() / "catalog.sqlite"));
  {
    const auto storage = open_storage(folder.path());
    EXPECT_EQ(look(*storage, kMain), picture(29));
    EXPECT_EQ(look(*storage, kKept), picture(19));
    EXPECT_EQ(look(*storage, {"c", "late"}), picture(29));
    EXPECT_LE(depth_of(*storage, kMain), kShallowStack);
  }
  EXPECT_THAT(problems_of(folder.path()), testing::IsEmpty());
}

}  // namespace
}  // namespace sw::storage
