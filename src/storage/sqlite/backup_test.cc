// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "storage/sqlite/data_folder.h"
#include "storage/sqlite/sqlite_fixture.h"

namespace sw::storage {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(BackUp, CopiesAllObjectsAndAlarmsToAFolderThatCanBeUsed) {
  const TemporaryDirectory folder = temporary();
  const fs::path copy = folder.path() / "copies" / "first";
  const auto storage = open_storage(folder.path() / "data");
  for (const char* id : {"1", "2", "3"}) ASSERT_TRUE(put(*storage, {"a", id}, "key", id).ok());
  auto object = *storage->open({"a", "2"}, {});
  ASSERT_TRUE(
      object->transact([](Transaction& transaction) { return transaction.set_alarm(at(9)); }).ok());
  ASSERT_TRUE(storage->remove({"a", "3"}).ok());
  const auto report = storage->back_up(copy);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->objects, 2U);
  EXPECT_TRUE(report->damaged.empty());
  ASSERT_TRUE(put(*storage, {"a", "1"}, "key", "changed later").ok());
  struct stat info = {};
  ASSERT_EQ(::stat(copy.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);

  const auto restored = open_storage(copy);
  EXPECT_EQ(*get(*restored, {"a", "1"}, "key"), "1");
  EXPECT_EQ(*get(*restored, {"a", "3"}, "key"), "(nothing)");
  EXPECT_EQ(due(*restored), "2@9 ");
  ASSERT_TRUE(put(*restored, {"a", "new"}, "key", "x").ok());
}

TEST(BackUp, HoldsNothingThatWasDeleted) {
  const TemporaryDirectory folder = temporary();
  const auto storage = open_storage(folder.path() / "data");
  auto object = *storage->open({"a", "1"}, {});
  const std::string secret = "the-secret-that-was-deleted";
  ASSERT_TRUE(put(*storage, {"a", "1"}, "key", secret + std::string(3000, 'x')).ok());
  ASSERT_TRUE(put(*storage, {"a", "1"}, "other", "stays").ok());
  object = *storage->open({"a", "1"}, {});
  ASSERT_TRUE(
      object->transact([](Transaction& transaction) { return transaction.erase(1, "key"); }).ok());
  ASSERT_TRUE(storage->back_up(folder.path() / "copy").ok());
  for (const fs::path& file : object_files(folder.path() / "copy")) {
    EXPECT_EQ(whole_file(file).find(secret), std::string::npos);
  }
}

TEST(BackUp, RefusesAFolderThatExists) {
  const TemporaryDirectory folder = temporary();
  const auto storage = open_storage(folder.path() / "data");
  EXPECT_EQ(storage->back_up(folder.path()).error().code, ErrorCode::kInvalidArgument);
}

TEST(BackUp, NamesADamagedObjectAndCopiesTheOthers) {
  const TemporaryDirectory folder = temporary();
  const fs::path data = folder.path() / "data";
  {
    const auto storage = open_storage(data);
    ASSERT_TRUE(put(*storage, {"a", "bad"}, "key", "x").ok());
    ASSERT_TRUE(put(*storage, {"a", "good"}, "key", "y").ok());
    ASSERT_TRUE(put(*storage, {"a", "missing"}, "key", "z").ok());
  }
  std::ofstream(DataFolder::look_at(data).object(1), std::ios::binary) << std::string(4096, '?');
  fs::remove(DataFolder::look_at(data).object(3));
  const auto report = open_storage(data)->back_up(folder.path() / "copy");
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->objects, 1U);
  EXPECT_THAT(report->damaged, testing::ElementsAre(HasSubstr("a/bad"), HasSubstr("a/missing")));
  const auto restored = open_storage(folder.path() / "copy");
  EXPECT_EQ(*get(*restored, {"a", "good"}, "key"), "y");
  EXPECT_EQ((*restored->list("a", "", 10)).size(), 1U);
}

TEST(BackUp, IsOfOneMomentWhileOthersCommit) {
  const TemporaryDirectory folder = temporary();
  // Small, so that rows move to the databases all the time.
  const auto storage =
      open_storage(folder.path() / "data", {.vfs = {}, .journal_bytes_max = 20'000});
  std::atomic<bool> stop = false;
  std::atomic<unsigned> committed = 0;
  std::thread writer([&] {
    const auto first = *storage->open({"k", "first"}, {});
    const auto second = *storage->open({"k", "second"}, {});
    for (unsigned number = 1; !stop; ++number) {
      const TransactionBody body = [&](Transaction& transaction) {
        return transaction.put(1, "n", as_bytes(std::to_string(number)));
      };
      EXPECT_TRUE(first->transact(body, {.also = {{*second, body}}}).ok());
      committed = number;
    }
  });
  for (int copy = 0; copy < 5; ++copy) {
    const unsigned before = committed;
    while (committed < before + 20) std::this_thread::yield();
    const unsigned last = committed;
    const fs::path target = folder.path() / std::to_string(copy);
    const auto report = storage->back_up(target);
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(report->objects, 2U);
    const auto restored = open_storage(target);
    const std::string text = *get(*restored, {"k", "first"}, "n");
    EXPECT_GE(std::stoul(text), last);
    EXPECT_EQ(*get(*restored, {"k", "second"}, "n"), text);
  }
  stop = true;
  writer.join();
}

}  // namespace
}  // namespace sw::storage
