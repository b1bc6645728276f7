// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/backup.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "sandbox_workers/base/unique_fd.h"
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
  const auto report = back_up(folder.path() / "data", copy);
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
  ASSERT_TRUE(back_up(folder.path() / "data", folder.path() / "copy").ok());
  for (const fs::path& file : object_files(folder.path() / "copy")) {
    EXPECT_EQ(whole_file(file).find(secret), std::string::npos);
  }
}

TEST(BackUp, RefusesAFolderThatExistsAndOneThatIsNoDataFolder) {
  const TemporaryDirectory folder = temporary();
  { open_storage(folder.path() / "data"); }
  EXPECT_EQ(back_up(folder.path() / "data", folder.path()).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(back_up(folder.path() / "none", folder.path() / "copy").error().code,
            ErrorCode::kNotFound);
  EXPECT_FALSE(fs::exists(folder.path() / "copy"));
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
  const auto report = back_up(data, folder.path() / "copy");
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->objects, 1U);
  EXPECT_THAT(report->damaged, testing::ElementsAre(HasSubstr("a/bad"), HasSubstr("a/missing")));
  const auto restored = open_storage(folder.path() / "copy");
  EXPECT_EQ(*get(*restored, {"a", "good"}, "key"), "y");
  EXPECT_EQ((*restored->list("a", "", 10)).size(), 1U);
}

TEST(BackUp, IsConsistentWhileAnotherProcessCommits) {
  const TemporaryDirectory folder = temporary();
  const fs::path data = folder.path() / "data";
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd from_child(ends[0]);
  UniqueFd to_parent(ends[1]);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) commit_until_killed(data, ends[1]);
  to_parent = UniqueFd();
  unsigned last[4] = {0, 0, 0, 0};
  unsigned message[2];
  for (int copy = 0; copy < 5; ++copy) {
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(::read(from_child.get(), message, sizeof message),
                static_cast<ssize_t>(sizeof message));
      last[message[0]] = message[1];
    }
    const fs::path target = folder.path() / std::to_string(copy);
    const auto report = back_up(data, target);
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(report->objects, 4U);
    const auto restored = open_storage(target);
    std::string alarms;
    for (unsigned which = 0; which < 4; ++which) {
      const ObjectName name{"k", std::to_string(which)};
      const std::string text = *get(*restored, name, "0");
      const auto found = static_cast<unsigned>(std::stoul(text));
      EXPECT_GE(found, last[which]);
      EXPECT_EQ(*get(*restored, name, "1"), text);
      EXPECT_EQ(*get(*restored, name, "2"), text);
      alarms += name.id + "@" + std::to_string(found % 2 == 0 ? found : 1000 - found) + " ";
    }
    EXPECT_EQ(alarms_of(due(*restored)), alarms_of(alarms));
  }
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
}

}  // namespace
}  // namespace sw::storage
