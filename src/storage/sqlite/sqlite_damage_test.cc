// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What becomes of files that are damaged or lost.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "storage/sqlite/data_folder.h"
#include "storage/sqlite/sqlite_fixture.h"

namespace sw::storage {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(SqliteStorage, ADamagedObjectIsNamedAndOthersAreNotAffected) {
  const TemporaryDirectory folder = temporary();
  {
    const auto storage = open_storage(folder.path());
    ASSERT_TRUE(put(*storage, {"a", "bad"}, "key", "x").ok());
    ASSERT_TRUE(put(*storage, {"a", "good"}, "key", "y").ok());
  }
  const fs::path file = DataFolder::look_at(folder.path()).object(1);
  const std::string whole = whole_file(file);
  const std::size_t sizes[] = {0, 10, 100, 512, 1024, 1500, 2048, 3000};
  for (const std::size_t size : sizes) {
    std::ofstream(file, std::ios::binary) << whole.substr(0, size);
    const auto storage = open_storage(folder.path());
    const auto read = get(*storage, {"a", "bad"}, "key");
    ASSERT_FALSE(read.ok()) << "cut to " << size << " bytes";
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt) << read.error().message;
    EXPECT_THAT(read.error().message, HasSubstr(file.native()));
    EXPECT_EQ(put(*storage, {"a", "bad"}, "key", "z").error().code, ErrorCode::kCorrupt);
    EXPECT_EQ(*get(*storage, {"a", "good"}, "key"), "y");
  }
  // Nothing was wiped: the file put back is the object again.
  std::ofstream(file, std::ios::binary) << whole;
  EXPECT_EQ(*get(*open_storage(folder.path()), {"a", "bad"}, "key"), "x");
}

TEST(SqliteStorage, RandomDamageIsAnErrorOrHarmlessButNeverACrash) {
  const TemporaryDirectory folder = temporary();
  {
    const auto storage = open_storage(folder.path());
    for (int i = 0; i < 40; ++i)
      ASSERT_TRUE(put(*storage, {"a", "1"}, std::to_string(i), std::string(300, 'v')).ok());
  }
  const fs::path file = DataFolder::look_at(folder.path()).object(1);
  const std::string whole = whole_file(file);
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 60; ++round) {
    std::string damaged = whole;
    for (int i = 0; i < 20; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    std::ofstream(file, std::ios::binary) << damaged;
    const auto storage = open_storage(folder.path());
    auto object = *storage->open({"a", "1"}, {});
    const auto done = object->transact([](Transaction& transaction) -> Result<void> {
      SW_CHECK_OK(transaction.scan({1, "", ""}, Order::kAscending, [](std::string_view, BytesView) {
        return Result<Scan>(Scan::kContinue);
      }));
      SW_CHECK_OK(transaction.put(1, "5", as_bytes("new")));
      return transaction.erase_range({1, "2", "3"});
    });
    if (!done.ok()) {
      EXPECT_NE(done.error().code, ErrorCode::kConflict) << done.error().message;
    }
  }
}

TEST(SqliteStorage, AMissingObjectFileIsDamageNotAnEmptyObject) {
  const TemporaryDirectory folder = temporary();
  ASSERT_TRUE(put(*open_storage(folder.path()), {"a", "1"}, "key", "x").ok());
  ASSERT_TRUE(fs::remove(DataFolder::look_at(folder.path()).object(1)));
  const auto read = get(*open_storage(folder.path()), {"a", "1"}, "key");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
}

TEST(SqliteStorage, ADamagedObjectDoesNotHoldUpTheAlarmsOfOthers) {
  const TemporaryDirectory folder = temporary();
  {
    const auto storage = open_storage(folder.path());
    for (const char* id : {"bad", "good"}) {
      auto object = *storage->open({"a", id}, {});
      ASSERT_TRUE(
          object->transact([](Transaction& transaction) { return transaction.set_alarm(at(7)); })
              .ok());
    }
  }
  std::ofstream(DataFolder::look_at(folder.path()).object(1), std::ios::binary) << "rubbish";
  const auto storage = open_storage(folder.path());
  EXPECT_EQ(due(*storage), "bad@7 good@7 ");
  EXPECT_EQ(get(*storage, {"a", "bad"}, "key").error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(*get(*storage, {"a", "good"}, "key"), "(nothing)");
}

TEST(SqliteStorage, ACatalogThatIsLostOrDamagedIsMadeAnew) {
  const TemporaryDirectory folder = temporary();
  const fs::path catalog = folder.path() / "catalog.sqlite";
  {
    const auto storage = open_storage(folder.path());
    for (const char* id : {"1", "2", "3"}) ASSERT_TRUE(put(*storage, {"a", id}, "key", id).ok());
    auto object = *storage->open({"a", "2"}, {});
    ASSERT_TRUE(
        object->transact([](Transaction& transaction) { return transaction.set_alarm(at(9)); })
            .ok());
    ASSERT_TRUE(storage->remove({"a", "3"}).ok());
  }
  for (const bool lost : {true, false}) {
    if (lost) {
      fs::remove(catalog);
    } else {
      std::ofstream(catalog, std::ios::binary) << std::string(5000, '?');
    }
    const auto storage = open_storage(folder.path());
    EXPECT_EQ((*storage->list("a", "", 10)).size(), 2U);
    EXPECT_EQ(*get(*storage, {"a", "1"}, "key"), "1");
    EXPECT_EQ(*get(*storage, {"a", "3"}, "key"), "(nothing)");
    EXPECT_EQ(due(*storage), "2@9 ");
  }
  const auto storage = open_storage(folder.path());
  ASSERT_TRUE(put(*storage, {"a", "new"}, "key", "x").ok());
  EXPECT_EQ(*get(*storage, {"a", "1"}, "key"), "1");
}

}  // namespace
}  // namespace sw::storage
