// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "storage/sqlite/sqlite_fixture.h"

namespace sw::storage {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Objects in the databases, one of them copied, and changes in the journal.
void fill(const fs::path& folder) {
  {
    const auto storage = open_storage(folder);
    for (const char* id : {"1", "2"}) ASSERT_TRUE(put(*storage, {"a", id}, "key", "x").ok());
    ASSERT_TRUE(storage->change({.copies = {{.from = {"a", "1"}, .to = {"a", "3"}}}}).ok());
  }
  const auto storage = *open_sqlite_storage(folder, {});
  ASSERT_TRUE(put(*storage, {"a", "2"}, "key", "y").ok());
}

TEST(CheckDataFolder, CountsWhatIsThere) {
  const TemporaryDirectory folder = temporary();
  fill(folder.path());
  const auto check = check_data_folder(folder.path());
  ASSERT_TRUE(check.ok()) << check.error().message;
  EXPECT_THAT(check->problems, IsEmpty());
  EXPECT_EQ(check->objects, 3U);
  EXPECT_EQ(check->layers, 4U);
  EXPECT_GE(check->frames, 1U);
  EXPECT_EQ(*get(*open_storage(folder.path()), {"a", "2"}, "key"), "y");
}

TEST(CheckDataFolder, NamesDamagedAndMissingDatabasesAndThoseOfNobody) {
  const TemporaryDirectory folder = temporary();
  fill(folder.path());
  const DataFolder data = DataFolder::look_at(folder.path());
  std::ofstream(data.object(1), std::ios::binary) << std::string(4096, '?');
  fs::remove(data.object(2));
  std::ofstream(data.object(1).parent_path() / "1001.sqlite", std::ios::binary) << "?";
  const auto check = check_data_folder(folder.path());
  ASSERT_TRUE(check.ok()) << check.error().message;
  EXPECT_THAT(check->problems,
              ElementsAre(HasSubstr("1.sqlite is damaged"), HasSubstr("2.sqlite is missing"),
                          HasSubstr("1001.sqlite belongs to no object")));
}

TEST(CheckDataFolder, IsOnlyForDataFoldersThatNobodyUses) {
  const TemporaryDirectory folder = temporary();
  EXPECT_EQ(check_data_folder(folder.path()).error().code, ErrorCode::kNotFound);
  const auto storage = open_storage(folder.path());
  EXPECT_EQ(check_data_folder(folder.path()).error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace sw::storage
