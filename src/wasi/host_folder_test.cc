// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasi/host_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "wasi/host_test_support.h"

namespace sw::wasi {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = Change::Kind;

using HostFolderTest = HostFolderFixture;

TEST_F(HostFolderTest, LoadsFilesFoldersLinksAndTimes) {
  fs::create_directories(host() / "d/empty");
  put("d/f", std::string("a\0b", 3));
  fs::create_symlink("d/f", host() / "link");
  const HostFolder folder = load();
  EXPECT_THAT(names("/workspace"), ElementsAre("d", "link"));
  EXPECT_THAT(names("/workspace/d"), ElementsAre("empty", "f"));
  EXPECT_EQ(read("/workspace/link"), std::string("a\0b", 3));
  struct stat status = {};
  ASSERT_EQ(::stat((host() / "d/f").c_str(), &status), 0);
  EXPECT_EQ(files().stat("/workspace/d/f")->times.modified / 1'000'000'000,
            static_cast<std::uint64_t>(status.st_mtim.tv_sec));
  EXPECT_THAT(folder.skipped(), IsEmpty());
  EXPECT_THAT(folder.changes(), IsEmpty());
}

TEST_F(HostFolderTest, LeavesOutWhatIsNoFile) {
  ASSERT_EQ(::mkfifo((host() / "pipe").c_str(), 0600), 0);
  put("bad\xFFname", "x");
  put("good", "x");
  HostFolder folder = load();
  EXPECT_THAT(folder.skipped(), ElementsAre("\"bad\\xffname\"", "pipe"));
  EXPECT_THAT(names("/workspace"), ElementsAre("good"));
  ASSERT_EQ(files().remove("/workspace/good"), Errno::kSuccess);
  ASSERT_TRUE(folder.write_back().ok());
  EXPECT_TRUE(fs::exists(host() / "pipe"));
  EXPECT_TRUE(fs::exists(host() / "bad\xFFname"));
}

TEST_F(HostFolderTest, NeverReadsThroughALink) {
  const fs::path secret = parent_.path() / "secret";
  std::ofstream(secret) << "secret";
  fs::create_symlink(secret, host() / "absolute");
  fs::create_symlink("../secret", host() / "up");
  fs::create_directory_symlink("..", host() / "parent");
  load();
  EXPECT_EQ(read("/workspace/absolute"), "ENOENT");
  EXPECT_EQ(read("/workspace/up"), "ENOENT");
  EXPECT_EQ(read("/workspace/parent/secret"), "ENOENT");
  EXPECT_THAT(names("/workspace/parent"),
              ElementsAre("workspace", "tmp", "dev", "home"));  // the guest's own root
}

TEST_F(HostFolderTest, RefusesWhatPassesALimit) {
  put("f", "12345");
  EXPECT_TRUE(HostFolder::load(host(), {.file_bytes_max = 5}, 1).ok());
  EXPECT_EQ(HostFolder::load(host(), {.file_bytes_max = 4}, 1).error().code,
            ErrorCode::kLimitExceeded);
  EXPECT_TRUE(HostFolder::load(host(), {.tree_bytes_max = 5}, 1).ok());
  EXPECT_EQ(HostFolder::load(host(), {.tree_bytes_max = 4}, 1).error().code,
            ErrorCode::kLimitExceeded);
  EXPECT_TRUE(HostFolder::load(host(), {.entries_max = 1}, 1).ok());
  EXPECT_EQ(HostFolder::load(host(), {.entries_max = 0}, 1).error().code,
            ErrorCode::kLimitExceeded);
  EXPECT_EQ(HostFolder::load(host() / "none", {}, 1).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(HostFolder::load(host() / "f", {}, 1).error().code, ErrorCode::kNotFound);
}

TEST_F(HostFolderTest, TellsWhatChanged) {
  fs::create_directory(host() / "d");
  put("d/gone", "x");
  put("same", "x");
  put("rewritten", "x");
  put("changed", "x");
  HostFolder folder = load();
  ASSERT_EQ(files().remove_all("/workspace/d"), Errno::kSuccess);
  ASSERT_EQ(write("/workspace/rewritten", "x"), Errno::kSuccess);
  ASSERT_EQ(write("/workspace/changed", "y"), Errno::kSuccess);
  ASSERT_EQ(files().make_directory("/workspace/new"), Errno::kSuccess);
  EXPECT_THAT(folder.changes(),
              ElementsAre(Change{Kind::kModified, FileType::kRegularFile, "changed"},
                          Change{Kind::kRemoved, FileType::kDirectory, "d"},
                          Change{Kind::kRemoved, FileType::kRegularFile, "d/gone"},
                          Change{Kind::kCreated, FileType::kDirectory, "new"}));
}

TEST_F(HostFolderTest, WritesBackExactlyTheChanges) {
  fs::create_directories(host() / "d/e");
  put("d/e/gone", "x");
  put("kept", "x");
  put("changed", "x");
  put("becomes_folder", "x");
  fs::create_directory(host() / "becomes_file");
  put("becomes_file/inner", "x");
  ASSERT_EQ(::chmod((host() / "changed").c_str(), 0640), 0);
  struct stat before = {};
  ASSERT_EQ(::stat((host() / "kept").c_str(), &before), 0);
  HostFolder folder = load();
  ASSERT_EQ(files().remove_all("/workspace/d"), Errno::kSuccess);
  ASSERT_EQ(write("/workspace/changed", "new content"), Errno::kSuccess);
  ASSERT_EQ(files().remove("/workspace/becomes_folder"), Errno::kSuccess);
  ASSERT_EQ(files().make_directories("/workspace/becomes_folder/a/b"), Errno::kSuccess);
  ASSERT_EQ(write("/workspace/becomes_folder/a/f", "deep"), Errno::kSuccess);
  ASSERT_EQ(files().remove_all("/workspace/becomes_file"), Errno::kSuccess);
  ASSERT_EQ(write("/workspace/becomes_file", "file"), Errno::kSuccess);
  ASSERT_EQ(files().symlink("a/f", "/workspace/becomes_folder/link"), Errno::kSuccess);
  const auto done = folder.write_back();
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_THAT(done->refused, IsEmpty());
  EXPECT_FALSE(fs::exists(host() / "d"));
  EXPECT_EQ(get("changed"), "new content");
  EXPECT_EQ(get("becomes_folder/a/f"), "deep");
  EXPECT_TRUE(fs::is_directory(host() / "becomes_folder/a/b"));
  EXPECT_EQ(get("becomes_file"), "file");
  EXPECT_EQ(get("becomes_folder/link"), "deep");
  struct stat after = {};
  ASSERT_EQ(::stat((host() / "changed").c_str(), &after), 0);
  EXPECT_EQ(after.st_mode & 0777U, 0640U);
  ASSERT_EQ(::stat((host() / "kept").c_str(), &after), 0);
  EXPECT_EQ(after.st_ino, before.st_ino);  // untouched
  EXPECT_THAT(folder.changes(), IsEmpty());
  const auto again = folder.write_back();
  ASSERT_TRUE(again.ok());
  EXPECT_THAT(again->written, IsEmpty());
}

TEST_F(HostFolderTest, LeavesNothingBehindBesideWhatItWrites) {
  HostFolder folder = load();
  const std::string long_name(kNameBytesMax, 'n');
  ASSERT_EQ(write("/workspace/" + long_name, "x"), Errno::kSuccess);
  ASSERT_TRUE(folder.write_back().ok());
  std::vector<std::string> there;
  for (const auto& entry : fs::directory_iterator(host())) there.push_back(entry.path().filename());
  EXPECT_THAT(there, ElementsAre(long_name));
}

TEST_F(HostFolderTest, DoesNotWriteLinksThatLeadOut) {
  HostFolder folder = load();
  ASSERT_EQ(files().make_directory("/workspace/d"), Errno::kSuccess);
  ASSERT_EQ(files().symlink("/etc/passwd", "/workspace/absolute"), Errno::kSuccess);
  ASSERT_EQ(files().symlink("../../x", "/workspace/d/up"), Errno::kSuccess);
  ASSERT_EQ(files().symlink("../f", "/workspace/d/fine"), Errno::kSuccess);
  const auto done = folder.write_back();
  ASSERT_TRUE(done.ok());
  EXPECT_THAT(done->refused, ElementsAre("absolute -> /etc/passwd: leads out of the folder",
                                         "d/up -> ../../x: leads out of the folder"));
  EXPECT_EQ(fs::read_symlink(host() / "d/fine"), "../f");
  EXPECT_FALSE(fs::exists(fs::symlink_status(host() / "absolute")));
}

TEST_F(HostFolderTest, NeverWritesThroughALinkThatWasPutThereMeanwhile) {
  fs::create_directory(host() / "d");
  const fs::path outside = parent_.path() / "outside";
  fs::create_directory(outside);
  HostFolder folder = load();
  ASSERT_EQ(write("/workspace/d/f", "x"), Errno::kSuccess);
  ASSERT_EQ(write("/workspace/target", "mine"), Errno::kSuccess);
  fs::remove(host() / "d");
  fs::create_directory_symlink(outside, host() / "d");
  std::ofstream(outside / "victim") << "victim";
  fs::create_symlink(outside / "victim", host() / "target");
  const auto refused = folder.write_back();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_EQ(refused.error().message,
            "d/f no longer has its folder on the host; target is a link on the host, which was not "
            "loaded");
  EXPECT_FALSE(fs::exists(outside / "f"));
  fs::remove(host() / "d");
  fs::create_directory(host() / "d");
  fs::remove(host() / "target");
  const auto done = folder.write_back();
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(read_text_file(outside / "victim").value(), "victim");
  EXPECT_EQ(get("target"), "mine");
  EXPECT_EQ(get("d/f"), "x");
}

}  // namespace
}  // namespace sw::wasi
