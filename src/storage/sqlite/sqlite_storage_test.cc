// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/sqlite_storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>

#include "storage/sqlite/connection.h"
#include "storage/sqlite/data_folder.h"
#include "storage/sqlite/faulty_disk.h"
#include "storage/sqlite/sqlite_fixture.h"

namespace sw::storage {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// ---- formats

TEST(SqliteStorage, AnObjectFileOfANewerFormatIsRefusedAndLeftAsItIs) {
  const TemporaryDirectory folder = temporary();
  ASSERT_TRUE(put(*open_storage(folder.path()), {"a", "1"}, "key", "x").ok());
  const fs::path file = DataFolder::look_at(folder.path()).object(1);
  ASSERT_TRUE((*Connection::open(file, Connection::Mode::kExisting, ""))
                  ->execute("PRAGMA user_version = 99")
                  .ok());
  const auto refused = put(*open_storage(folder.path()), {"a", "1"}, "key", "y");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("has format 99"));
  ASSERT_TRUE((*Connection::open(file, Connection::Mode::kExisting, ""))
                  ->execute("PRAGMA user_version = 2")
                  .ok());
  EXPECT_EQ(*get(*open_storage(folder.path()), {"a", "1"}, "key"), "x");
}

// ---- deletion

TEST(SqliteStorage, ARemovedObjectLeavesNoFile) {
  const TemporaryDirectory folder = temporary();
  ASSERT_TRUE(put(*open_storage(folder.path()), {"a", "1"}, "key", "x").ok());
  ASSERT_EQ(object_files(folder.path()).size(), 1U);
  const auto storage = open_storage(folder.path());
  ASSERT_TRUE(storage->remove({"a", "1"}).ok());
  std::string left;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path() / "objects")) {
    if (entry.is_regular_file()) left += entry.path().native() + " ";
  }
  EXPECT_EQ(left, "");
}

TEST(SqliteStorage, AFileNumberIsNeverUsedAgain) {
  const TemporaryDirectory folder = temporary();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(put(*open_storage(folder.path()), {"a", "1"}, "key", "x").ok());
    EXPECT_EQ(object_files(folder.path()).front(),
              DataFolder::look_at(folder.path()).object(round + 1));
    ASSERT_TRUE(open_storage(folder.path())->remove({"a", "1"}).ok());
  }
}

TEST(SqliteStorage, AnObjectThatLostMostOfItsDataGivesTheSpaceBack) {
  const TemporaryDirectory folder = temporary();
  {
    const auto storage =
        open_storage(folder.path(), {.idle_open_max = 0, .vfs = {}, .on_notice = {}});
    ASSERT_TRUE(put(*storage, {"a", "1"}, "large", std::string(9U << 20U, 'x')).ok());
  }
  {
    const auto storage =
        open_storage(folder.path(), {.idle_open_max = 0, .vfs = {}, .on_notice = {}});
    ASSERT_TRUE(put(*storage, {"a", "1"}, "large", "small now").ok());
    EXPECT_EQ(*get(*storage, {"a", "1"}, "large"), "small now");
  }
  EXPECT_LT(fs::file_size(DataFolder::look_at(folder.path()).object(1)), 1U << 20U);
}

// ---- costs

std::uint64_t written_bytes(const char* which) {
  std::ifstream io("/proc/self/io");
  std::string name;
  std::uint64_t value = 0;
  while (io >> name >> value) {
    if (name == which) return value;
  }
  ADD_FAILURE() << "no " << which;
  return 0;
}

TEST(SqliteStorage, ASmallStepWritesAFewKilobytes) {
  const TemporaryDirectory folder = temporary();
  const auto storage = open_storage(folder.path());
  auto object = *storage->open({"a", "1"}, {});
  std::mt19937 random(1);
  const auto step = [&] {
    // What a small step of a context changes: a row of 200 bytes about it, and 1.2 to 1.8 KB of
    // compressed pages.
    std::string about(200, 'a');
    std::string pages(1200 + random() % 600, ' ');
    for (char& c : pages) c = static_cast<char>(random());
    about[random() % about.size()] = 'b';
    ASSERT_TRUE(object
                    ->transact([&](Transaction& transaction) -> Result<void> {
                      SW_CHECK_OK(transaction.put(1, "context", as_bytes(about)));
                      return transaction.put(2, "pages", as_bytes(pages));
                    })
                    .ok());
  };
  constexpr std::uint64_t kSteps = 300;
  for (int i = 0; i < 20; ++i) step();
  const std::uint64_t before = written_bytes("wchar:");
  for (std::uint64_t i = 0; i < kSteps; ++i) step();
  EXPECT_LE((written_bytes("wchar:") - before) / kSteps, 4500U);
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), {}));
}

TEST(SqliteStorage, TenThousandObjectsTakeABoundedNumberOfDescriptors) {
  const TemporaryDirectory folder = temporary();
  FaultyDisk disk;
  disk.set_syncs(FaultyDisk::Syncs::kSkipped);
  constexpr int kObjects = 10'000;
  constexpr std::size_t kIdleMax = 16;
  const std::size_t before = open_descriptors();
  const auto storage =
      open_storage(folder.path(), {.idle_open_max = kIdleMax, .vfs = disk.name(), .on_notice = {}});
  std::vector<std::unique_ptr<ObjectStorage>> objects;
  std::size_t most = 0;
  for (int i = 0; i < kObjects; ++i) {
    objects.push_back(*storage->open({"a", std::to_string(i)}, {}));
    ASSERT_TRUE(objects.back()
                    ->transact([&](Transaction& transaction) -> Result<void> {
                      SW_CHECK_OK(transaction.set_alarm(at(i)));
                      return transaction.put(1, "n", as_bytes(std::to_string(i)));
                    })
                    .ok());
    if (i % 100 == 0) most = std::max(most, open_descriptors());
  }
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    const std::size_t which = random() % kObjects;
    std::string text;
    ASSERT_TRUE(objects[which]
                    ->read([&](Reader& reader) -> Result<void> {
                      SW_TRY(const auto value, reader.get(1, "n"));
                      text = as_text(value.value_or(Bytes()));
                      return {};
                    })
                    .ok());
    ASSERT_EQ(text, std::to_string(which));
    if (i % 100 == 0) most = std::max(most, open_descriptors());
  }
  // Three for each idle database and the catalog, the lock, and one database in use.
  EXPECT_LE(most - before, (kIdleMax + 2) * 3 + 2);
  EXPECT_EQ((*storage->alarms_until(at(49), 100)).size(), 50U);
  EXPECT_EQ((*storage->list("a", "9998", 10)).size(), 1U);
}

}  // namespace
}  // namespace sw::storage
