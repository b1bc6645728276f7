// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/data_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/sqlite/sqlite_fixture.h"
#include "storage/sqlite/sqlite_storage.h"

namespace sw::storage {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(DataFolder, IsPrivateAndBelongsToOneProcess) {
  const TemporaryDirectory parent = temporary();
  const fs::path folder = parent.path() / "data";
  const auto storage = open_storage(folder);
  struct stat info = {};
  ASSERT_EQ(::stat(folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
  const auto second = open_sqlite_storage(folder, {});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(second.error().message, HasSubstr("in use by process " + std::to_string(::getpid())));
}

TEST(DataFolder, IsFreeAgainWhenItsOwnerEnds) {
  const TemporaryDirectory folder = temporary();
  ASSERT_TRUE(put(*open_storage(folder.path()), {"a", "1"}, "key", "x").ok());
  EXPECT_EQ(*get(*open_storage(folder.path()), {"a", "1"}, "key"), "x");
}

TEST(DataFolder, ThatOthersCanWriteToIsRefused) {
  const TemporaryDirectory folder = temporary();
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  EXPECT_EQ(open_sqlite_storage(folder.path(), {}).error().code, ErrorCode::kPermission);
}

}  // namespace
}  // namespace sw::storage
