// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasi/file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "wasi/test_support.h"

namespace sw::wasi {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

struct PathCase {
  std::string path;
  Errno expected;
};

TEST_F(FileSystemTest, ResolvesPathsAsPosixDoes) {
  ASSERT_EQ(files().make_directories("/workspace/dir/nested"), Errno::kSuccess);
  ASSERT_EQ(write("/workspace/dir/file", "x"), Errno::kSuccess);
  ASSERT_EQ(files().symlink("dir", "/workspace/to_dir"), Errno::kSuccess);
  ASSERT_EQ(files().symlink("dir/file", "/workspace/to_file"), Errno::kSuccess);
  ASSERT_EQ(files().symlink("/workspace/dir", "/workspace/absolute"), Errno::kSuccess);
  ASSERT_EQ(files().symlink("../../../../workspace/dir/file", "/workspace/dir/up"),
            Errno::kSuccess);
  ASSERT_EQ(files().symlink("missing", "/workspace/dangling"), Errno::kSuccess);
  ASSERT_EQ(files().symlink("loop", "/workspace/loop"), Errno::kSuccess);
  ASSERT_EQ(files().symlink("/", "/workspace/to_root"), Errno::kSuccess);
  ASSERT_EQ(files().symlink("dir/", "/workspace/slashed"), Errno::kSuccess);
  const PathCase cases[] = {
      {"dir", Errno::kSuccess},
      {"dir/", Errno::kSuccess},
      {"./dir/.//nested/../file", Errno::kSuccess},
      {".", Errno::kSuccess},
      {"dir/..", Errno::kSuccess},
      {"to_dir/nested", Errno::kSuccess},
      {"to_dir/", Errno::kSuccess},
      {"to_file", Errno::kSuccess},
      {"absolute/file", Errno::kSuccess},
      {"absolute/../dir/file", Errno::kSuccess},
      {"dir/up", Errno::kSuccess},
      {"to_root/workspace/dir", Errno::kSuccess},
      {"to_root", Errno::kSuccess},
      {"slashed/file", Errno::kSuccess},
      {"", Errno::kNoent},
      {"missing", Errno::kNoent},
      {"missing/x", Errno::kNoent},
      {"dangling", Errno::kNoent},
      {"dir/file/", Errno::kNotdir},
      {"dir/file/x", Errno::kNotdir},
      {"dir/file/..", Errno::kNotdir},
      {"dir/file/.", Errno::kNotdir},
      {"to_file/", Errno::kNotdir},
      {"loop", Errno::kLoop},
      {"loop/x", Errno::kLoop},
      {"/workspace/dir", Errno::kNotcapable},
      {"..", Errno::kNotcapable},
      {"dir/../../workspace", Errno::kNotcapable},
      {std::string("dir\0", 4), Errno::kInval},
      {std::string("dir/\0x", 6), Errno::kInval},
      {"\xFF", Errno::kIlseq},
      {std::string(kNameBytesMax, 'n'), Errno::kNoent},
      {std::string(kNameBytesMax + 1, 'n'), Errno::kNametoolong},
      {std::string(kNameBytesMax + 1, 'n') + "/x", Errno::kNametoolong},
      {"dir" + std::string(kPathBytesMax - 3, '/'), Errno::kSuccess},
      {"dir" + std::string(kPathBytesMax - 2, '/'), Errno::kNametoolong},
  };
  for (const PathCase& one : cases) {
    EXPECT_EQ(files().stat_at(workspace(), one.path, Follow::kYes).error(), one.expected)
        << one.path;
  }
}

TEST_F(FileSystemTest, TheParentOfTheRootIsTheRoot) {
  EXPECT_EQ(files().stat_at(root(), "../..", Follow::kYes)->inode, files().stat("/")->inode);
  EXPECT_TRUE(files().exists("/../workspace/../../workspace"));
  EXPECT_FALSE(files().exists("/etc/passwd"));
}

TEST_F(FileSystemTest, FollowsFortyLinksAndNotOneMore) {
  ASSERT_EQ(write("/workspace/end", "found"), Errno::kSuccess);
  std::string target = "end";
  for (int i = 1; i <= 41; ++i) {
    const std::string name = "l" + std::to_string(i);
    ASSERT_EQ(files().symlink(target, "/workspace/" + name), Errno::kSuccess);
    target = name;
  }
  EXPECT_EQ(read("/workspace/l40"), "found");
  EXPECT_EQ(read("/workspace/l41"), "ELOOP");
}

TEST_F(FileSystemTest, DoesNotFollowALastLinkUnlessASlashComesAfterIt) {
  ASSERT_EQ(files().make_directory("/workspace/d"), Errno::kSuccess);
  ASSERT_EQ(files().symlink("d", "/workspace/l"), Errno::kSuccess);
  EXPECT_EQ(files().stat("/workspace/l", Follow::kNo)->type, FileType::kSymbolicLink);
  EXPECT_EQ(files().stat("/workspace/l/", Follow::kNo)->type, FileType::kDirectory);
  EXPECT_EQ(*files().read_link("/workspace/l"), "d");
  EXPECT_EQ(files().read_link("/workspace/d").error(), Errno::kInval);
  EXPECT_EQ(files().remove_directory_at(workspace(), "l/"), Errno::kNotdir);
  EXPECT_EQ(files().unlink_at(workspace(), "l"), Errno::kSuccess);
  EXPECT_TRUE(files().exists("/workspace/d"));
}

TEST_F(FileSystemTest, CreatesTheFileADanglingLinkNames) {
  ASSERT_EQ(files().symlink("made", "/workspace/l"), Errno::kSuccess);
  EXPECT_EQ(write("/workspace/l", "x"), Errno::kSuccess);
  EXPECT_EQ(read("/workspace/made"), "x");
  EXPECT_EQ(write("/workspace/l2/", "x"), Errno::kIsdir);
  ASSERT_EQ(files().symlink("other", "/workspace/l3"), Errno::kSuccess);
  EXPECT_EQ(write("/workspace/l3", "x", WriteMode::kCreateNew), Errno::kExist);
}

TEST_F(FileSystemTest, DotsAndSlashesInNamesToChange) {
  ASSERT_EQ(files().make_directories("/workspace/d/e"), Errno::kSuccess);
  ASSERT_EQ(write("/workspace/f", ""), Errno::kSuccess);
  const Place here = workspace();
  EXPECT_EQ(files().make_directory_at(here, "."), Errno::kExist);
  EXPECT_EQ(files().make_directory_at(here, "new/"), Errno::kSuccess);
  EXPECT_EQ(files().make_directory_at(here, "d/.."), Errno::kExist);
  EXPECT_EQ(files().remove_directory_at(here, "d/."), Errno::kInval);
  EXPECT_EQ(files().remove_directory_at(here, "d/e/.."), Errno::kNotempty);
  EXPECT_EQ(files().remove_directory_at(here, "f"), Errno::kNotdir);
  EXPECT_EQ(files().remove_directory_at(here, "f/"), Errno::kNotdir);
  EXPECT_EQ(files().remove_directory_at(here, "new/"), Errno::kSuccess);
  EXPECT_EQ(files().unlink_at(here, "."), Errno::kIsdir);
  EXPECT_EQ(files().unlink_at(here, "f/"), Errno::kNotdir);
  EXPECT_EQ(files().unlink_at(here, "d/"), Errno::kIsdir);
  EXPECT_EQ(files().rename_at(here, "d/.", here, "x"), Errno::kBusy);
  EXPECT_EQ(files().rename_at(here, "f/", here, "x"), Errno::kNotdir);
  EXPECT_EQ(files().rename_at(here, "f", here, "x/"), Errno::kNotdir);
  EXPECT_EQ(files().rename_at(here, "d/", here, "x/"), Errno::kSuccess);
  EXPECT_EQ(files().link_at(here, "f", Follow::kNo, here, "g/"), Errno::kNoent);
  EXPECT_EQ(files().link_at(here, "f/", Follow::kNo, here, "g"), Errno::kNotdir);
  EXPECT_EQ(files().link_at(here, "x", Follow::kNo, here, "g"), Errno::kPerm);
  EXPECT_EQ(files().symlink_at("t", here, "l/"), Errno::kNoent);
  EXPECT_EQ(files().symlink_at("t", here, "f/"), Errno::kNotdir);
  EXPECT_EQ(files().symlink_at("t", here, "x/"), Errno::kExist);
  EXPECT_EQ(files().symlink_at("", here, "l"), Errno::kNoent);
  EXPECT_EQ(files().symlink_at("", here, "."), Errno::kNoent);
}

TEST_F(FileSystemTest, OpensWithTheFlagsOfPosix) {
  ASSERT_EQ(files().make_directory("/workspace/d"), Errno::kSuccess);
  ASSERT_EQ(write("/workspace/f", "content"), Errno::kSuccess);
  ASSERT_EQ(files().symlink("f", "/workspace/l"), Errno::kSuccess);
  const auto open = [&](std::string_view path, const OpenFlags& flags) {
    return files().open_at(workspace(), path, flags).error();
  };
  EXPECT_EQ(open("d", {}), Errno::kSuccess);
  EXPECT_EQ(open("d", {.directory = true}), Errno::kSuccess);
  EXPECT_EQ(open("d", {.write = true}), Errno::kIsdir);
  EXPECT_EQ(open("d", {.truncate = true}), Errno::kIsdir);
  EXPECT_EQ(open("d", {.create = true}), Errno::kIsdir);
  EXPECT_EQ(open("f", {.directory = true}), Errno::kNotdir);
  EXPECT_EQ(open("f/", {}), Errno::kNotdir);
  EXPECT_EQ(open("f", {.create = true, .exclusive = true}), Errno::kExist);
  EXPECT_EQ(open("l", {}), Errno::kLoop);
  EXPECT_EQ(open("l", {.directory = true}), Errno::kNotdir);
  EXPECT_EQ(open("l", {.follow = Follow::kYes}), Errno::kSuccess);
  EXPECT_EQ(open("l", {.create = true, .exclusive = true, .follow = Follow::kYes}), Errno::kExist);
  EXPECT_EQ(open("new/", {.create = true}), Errno::kIsdir);
  EXPECT_EQ(open("new", {.create = true, .directory = true}), Errno::kInval);
  EXPECT_EQ(open("none", {}), Errno::kNoent);
  EXPECT_EQ(read("/workspace/f"), "content");
  EXPECT_EQ(open("f", {.truncate = true}), Errno::kSuccess);
  EXPECT_EQ(read("/workspace/f"), "");
}

TEST_F(FileSystemTest, MountsCanNeitherBeLeftNorMovedNorRemoved) {
  ASSERT_EQ(write("/workspace/f", "x"), Errno::kSuccess);
  EXPECT_EQ(files().rename("/workspace/f", "/tmp/f"), Errno::kXdev);
  EXPECT_EQ(files().link("/workspace/f", "/tmp/f"), Errno::kXdev);
  EXPECT_EQ(files().rename("/workspace", "/w"), Errno::kBusy);
  EXPECT_EQ(files().rename("/workspace", "/tmp/w"), Errno::kXdev);
  EXPECT_EQ(files().remove("/tmp"), Errno::kBusy);
  EXPECT_EQ(files().remove_all("/workspace"), Errno::kBusy);
  EXPECT_EQ(files().remove_all("/"), Errno::kBusy);
  EXPECT_EQ(files().make_directory("/new"), Errno::kRofs);
  EXPECT_EQ(files().make_directory("/workspace"), Errno::kExist);
  EXPECT_EQ(write("/new", ""), Errno::kRofs);
  EXPECT_EQ(files().symlink("x", "/dev/new"), Errno::kRofs);
  EXPECT_EQ(files().remove("/dev/null"), Errno::kRofs);
  EXPECT_EQ(files().set_file_times("/dev", {.accessed = 1, .modified = 1}), Errno::kRofs);
  EXPECT_THAT(names("/"), ElementsAre("workspace", "tmp", "dev", "home"));
}

TEST_F(FileSystemTest, AnAliasIsAnotherPathOfTheSameFiles) {
  ASSERT_EQ(files().make_directory("/workspace/d"), Errno::kSuccess);
  ASSERT_EQ(write("/home/user/d/f", "x"), Errno::kSuccess);
  EXPECT_EQ(read("/workspace/d/f"), "x");
  EXPECT_THAT(names("/home"), ElementsAre("user"));
  EXPECT_THAT(names("/home/user"), ElementsAre("d"));
  for (const std::string path : {"", "/d", "/d/f"}) {
    const Stat here = *files().stat("/workspace" + path);
    const Stat there = *files().stat("/home/user" + path);
    EXPECT_EQ(here.device, there.device);
    EXPECT_EQ(here.inode, there.inode);
  }
  EXPECT_EQ(files().rename("/home/user/d/f", "/workspace/g"), Errno::kSuccess);
  EXPECT_EQ(files().link("/workspace/g", "/home/user/h"), Errno::kSuccess);
  EXPECT_EQ(files().rename("/home/user/h", "/tmp/h"), Errno::kXdev);
  EXPECT_EQ(files().rename("/home/user", "/home/other"), Errno::kBusy);
  EXPECT_EQ(files().remove("/home/user"), Errno::kBusy);
  EXPECT_EQ(read("/home/user/g"), "x");
}

TEST_F(FileSystemTest, PathsThroughAnAliasStayThere) {
  ASSERT_EQ(files().make_directories("/workspace/d/e"), Errno::kSuccess);
  EXPECT_EQ(*files().real_path("/home/user/d/e/.."), "/home/user/d");
  EXPECT_EQ(*files().real_path("/home/user/d/../.."), "/home");
  EXPECT_EQ(*files().real_path("/workspace/.."), "/");
  ASSERT_EQ(files().symlink("/home/user/d", "/workspace/l"), Errno::kSuccess);
  EXPECT_EQ(*files().real_path("/workspace/l/e"), "/home/user/d/e");
  const Place home = *files().find_at(root(), "home/user", Follow::kYes);
  EXPECT_EQ(files().stat_at(home, "..", Follow::kYes).error(), Errno::kNotcapable);
  EXPECT_EQ(files().stat_at(home, "d/..", Follow::kYes)->inode, files().stat("/workspace")->inode);
}

TEST_F(FileSystemTest, AnAliasObeysTheRulesOfItsTree) {
  ASSERT_EQ(write("/workspace/f", "x"), Errno::kSuccess);
  workspace_->set_read_only(true);
  EXPECT_EQ(write("/home/user/f", "y"), Errno::kRofs);
  workspace_->set_read_only(false);
  workspace_->set_disabled(true);
  EXPECT_EQ(read("/home/user/f"), "EACCES");
  EXPECT_FALSE(files().exists("/home/user"));
  workspace_->set_disabled(false);
  files().mount(kWorkspaceMount, std::make_shared<Tree>(TreeLimits{.file_bytes_max = 3}, 1));
  EXPECT_FALSE(files().exists("/home/user/f"));
  EXPECT_EQ(write("/home/user/f", "1234"), Errno::kFbig);
}

TEST_F(FileSystemTest, DevicesTakeWhatIsWrittenAlthoughTheirTreeIsReadOnly) {
  EXPECT_EQ(write("/dev/null", "gone"), Errno::kSuccess);
  EXPECT_EQ(read("/dev/null"), "");
  EXPECT_EQ(read("/dev/zero"), "EINVAL");
  EXPECT_EQ(files().stat("/dev/urandom")->type, FileType::kCharacterDevice);
  EXPECT_THAT(names("/dev"), UnorderedElementsAre("null", "zero", "random", "urandom", "stdin",
                                                  "stdout", "stderr"));
}

TEST_F(FileSystemTest, ADisabledTreeAnswersEveryUseWithAccess) {
  ASSERT_EQ(write("/workspace/f", "x"), Errno::kSuccess);
  const Place before = workspace();
  workspace_->set_disabled(true);
  EXPECT_EQ(read("/workspace/f"), "EACCES");
  EXPECT_EQ(write("/workspace/f", "y"), Errno::kAcces);
  EXPECT_THAT(names("/workspace"), ElementsAre("EACCES"));
  EXPECT_EQ(files().make_directory("/workspace/d"), Errno::kAcces);
  EXPECT_EQ(files().stat_at(before, "f", Follow::kYes).error(), Errno::kAcces);
  EXPECT_EQ(files().set_times(before, {.accessed = 1, .modified = 1}), Errno::kAcces);
  EXPECT_FALSE(files().exists("/workspace"));
  workspace_->set_disabled(false);
  EXPECT_EQ(read("/workspace/f"), "x");
}

TEST_F(FileSystemTest, AFreshTmpIsMadeForEachFileSystem) {
  ASSERT_EQ(write("/tmp/f", "mine"), Errno::kSuccess);
  FileSystem other(standard_layout().build(), clocks_);
  other.mount(kWorkspaceMount, workspace_);
  EXPECT_FALSE(other.exists("/tmp/f"));
  ASSERT_EQ(other.write_file("/workspace/shared", as_bytes("x")), Errno::kSuccess);
  EXPECT_EQ(read("/workspace/shared"), "x");
}

TEST_F(FileSystemTest, EveryNodeHasItsOwnInodeOnItsDevice) {
  ASSERT_EQ(write("/workspace/a", ""), Errno::kSuccess);
  ASSERT_EQ(write("/workspace/b", ""), Errno::kSuccess);
  ASSERT_EQ(write("/tmp/a", ""), Errno::kSuccess);
  const Stat a = *files().stat("/workspace/a");
  const Stat b = *files().stat("/workspace/b");
  EXPECT_EQ(a.device, b.device);
  EXPECT_NE(a.inode, b.inode);
  EXPECT_NE(files().stat("/tmp/a")->device, a.device);
  ASSERT_EQ(files().rename("/workspace/a", "/workspace/c"), Errno::kSuccess);
  EXPECT_EQ(files().stat("/workspace/c")->inode, a.inode);
}

TEST_F(FileSystemTest, TimesFollowWhatIsDone) {
  ASSERT_EQ(write("/workspace/f", "x"), Errno::kSuccess);
  clocks_.realtime = 2'000'000;
  ASSERT_EQ(write("/workspace/f", "y", WriteMode::kAppend), Errno::kSuccess);
  Stat stat = *files().stat("/workspace/f");
  EXPECT_EQ(stat.times.modified, 2'000'000U);
  EXPECT_EQ(stat.times.changed, 2'000'000U);
  EXPECT_EQ(stat.times.accessed, 1'000'000U);
  clocks_.realtime = 3'000'000;
  ASSERT_EQ(files().set_file_times("/workspace/f", {.accessed = {}, .modified = 5}),
            Errno::kSuccess);
  stat = *files().stat("/workspace/f");
  EXPECT_EQ(stat.times.modified, 5U);
  EXPECT_EQ(stat.times.accessed, 1'000'000U);
  EXPECT_EQ(stat.times.changed, 3'000'000U);
}

TEST_F(FileSystemTest, WholeFileWritesAreAllOrNothing) {
  workspace_->set_limits({.file_bytes_max = 8, .tree_bytes_max = 12});
  ASSERT_EQ(write("/workspace/f", "1234"), Errno::kSuccess);
  EXPECT_EQ(write("/workspace/f", "56789", WriteMode::kAppend), Errno::kFbig);
  EXPECT_EQ(read("/workspace/f"), "1234");
  EXPECT_EQ(write("/workspace/f", "123456789"), Errno::kFbig);
  EXPECT_EQ(read("/workspace/f"), "1234");
  ASSERT_EQ(write("/workspace/f", "5678", WriteMode::kAppend), Errno::kSuccess);
  EXPECT_EQ(write("/workspace/g", "12345"), Errno::kNospc);
  EXPECT_EQ(files().copy_file("/workspace/f", "/workspace/h"), Errno::kNospc);
  EXPECT_EQ(write("/workspace/g", "1234"), Errno::kSuccess);
  EXPECT_EQ(write("/workspace/g", "x", WriteMode::kAppend), Errno::kNospc);
}

TEST_F(FileSystemTest, CopiesShareBytesUntilOneIsWrittenTo) {
  ASSERT_EQ(write("/workspace/a", "one"), Errno::kSuccess);
  ASSERT_EQ(files().copy_file("/workspace/a", "/workspace/b"), Errno::kSuccess);
  ASSERT_EQ(files().copy_file("/workspace/a", "/workspace/a"), Errno::kSuccess);
  ASSERT_EQ(write("/workspace/b", "!", WriteMode::kAppend), Errno::kSuccess);
  EXPECT_EQ(read("/workspace/a"), "one");
  EXPECT_EQ(read("/workspace/b"), "one!");
  EXPECT_EQ(files().copy_file("/workspace/a", "/workspace/b", WriteMode::kCreateNew),
            Errno::kExist);
  EXPECT_EQ(files().copy_file("/workspace", "/workspace/c"), Errno::kIsdir);
  EXPECT_EQ(files().copy_file("/workspace/none", "/workspace/c"), Errno::kNoent);
}

TEST_F(FileSystemTest, MakesDirectoriesWithTheirParents) {
  EXPECT_EQ(files().make_directories("/workspace/a//b/./c/"), Errno::kSuccess);
  EXPECT_EQ(files().make_directories("/workspace/a/b"), Errno::kSuccess);
  EXPECT_EQ(files().make_directories("/"), Errno::kSuccess);
  ASSERT_EQ(write("/workspace/f", ""), Errno::kSuccess);
  EXPECT_EQ(files().make_directories("/workspace/f"), Errno::kExist);
  EXPECT_EQ(files().make_directories("/workspace/f/x"), Errno::kNotdir);
  EXPECT_EQ(files().make_directories("/new/x"), Errno::kRofs);
}

TEST_F(FileSystemTest, RemovesFilesLinksAndEmptyDirectories) {
  ASSERT_EQ(files().make_directories("/workspace/d/e"), Errno::kSuccess);
  ASSERT_EQ(files().symlink("d", "/workspace/l"), Errno::kSuccess);
  EXPECT_EQ(files().remove("/workspace/d"), Errno::kNotempty);
  EXPECT_EQ(files().remove("/workspace/l"), Errno::kSuccess);
  EXPECT_EQ(files().remove("/workspace/d/e"), Errno::kSuccess);
  EXPECT_EQ(files().remove("/workspace/none"), Errno::kNoent);
  EXPECT_EQ(files().remove_all("/workspace/d"), Errno::kSuccess);
  EXPECT_EQ(files().remove_all("/workspace/d"), Errno::kNoent);
  EXPECT_EQ(workspace_->usage().entries, 0U);
}

TEST_F(FileSystemTest, TruncatesFilesOnly) {
  ASSERT_EQ(write("/workspace/f", "abc"), Errno::kSuccess);
  EXPECT_EQ(files().truncate("/workspace/f", 1), Errno::kSuccess);
  EXPECT_EQ(read("/workspace/f"), "a");
  EXPECT_EQ(files().truncate("/workspace", 1), Errno::kIsdir);
  EXPECT_EQ(files().truncate("/dev/null", 1), Errno::kInval);
  EXPECT_EQ(files().truncate("/workspace/none", 1), Errno::kNoent);
}

TEST_F(FileSystemTest, RealPathsHaveNoLinksAndNoDots) {
  ASSERT_EQ(files().make_directories("/workspace/a/b"), Errno::kSuccess);
  ASSERT_EQ(write("/workspace/a/f", ""), Errno::kSuccess);
  ASSERT_EQ(files().symlink("a/b", "/workspace/l"), Errno::kSuccess);
  ASSERT_EQ(files().symlink("/workspace/a/f", "/workspace/lf"), Errno::kSuccess);
  EXPECT_EQ(*files().real_path("/workspace/l/.."), "/workspace/a");
  EXPECT_EQ(*files().real_path("/workspace/lf"), "/workspace/a/f");
  EXPECT_EQ(*files().real_path("/workspace/"), "/workspace");
  EXPECT_EQ(*files().real_path("/dev/null"), "/dev/null");
  EXPECT_EQ(*files().real_path("/"), "/");
  EXPECT_EQ(files().real_path("/workspace/none").error(), Errno::kNoent);
}

TEST(FileSystemNormalize, CleansPathsAsText) {
  EXPECT_EQ(FileSystem::normalize("/workspace", "a/../b//./c/"), "/workspace/b/c");
  EXPECT_EQ(FileSystem::normalize("/workspace", "/x"), "/x");
  EXPECT_EQ(FileSystem::normalize("/workspace", "../../.."), "/");
  EXPECT_EQ(FileSystem::normalize("/", ""), "/");
}

TEST_F(FileSystemTest, HostPathsMustBeAbsolute) {
  EXPECT_EQ(read("workspace"), "EINVAL");
  EXPECT_EQ(read(""), "ENOENT");
  EXPECT_EQ(read("/" + std::string(kPathBytesMax, 'x')), "ENAMETOOLONG");
}

TEST(Layout, RefusesPathsThatAreTakenOrBelowAMount) {
  LayoutBuilder builder = standard_layout();
  EXPECT_FALSE(builder.add_mount("/workspace").ok());
  EXPECT_FALSE(builder.add_mount("/workspace/inner").ok());
  EXPECT_FALSE(builder.add_file("/dev/null", {}).ok());
  EXPECT_FALSE(builder.add_file("relative", {}).ok());
  EXPECT_FALSE(builder.add_directory("/a/../b").ok());
  EXPECT_TRUE(builder.add_file("/usr/lib/x", {}).ok());
  EXPECT_FALSE(builder.add_mount("/usr/lib/x").ok());
  EXPECT_FALSE(builder.add_directory("/usr/lib/x").ok());
}

TEST_F(FileSystemTest, AnAliasNeedsAMountAndAPlaceOfItsOwn) {
  LayoutBuilder builder;
  EXPECT_FALSE(builder.add_alias("/a", 0).ok());
  ASSERT_EQ(*builder.add_mount("/m"), 0U);
  EXPECT_TRUE(builder.add_alias("/a", 0).ok());
  EXPECT_FALSE(builder.add_alias("/a", 0).ok());
  EXPECT_FALSE(builder.add_alias("/m", 0).ok());
  EXPECT_FALSE(builder.add_alias("/m/a", 0).ok());
  EXPECT_FALSE(builder.add_alias("/", 0).ok());
  EXPECT_FALSE(builder.add_file("/a/f", {}).ok());
  EXPECT_EQ(*builder.add_mount("/n"), 1U);
  const auto layout = builder.build();
  EXPECT_EQ(layout->mount_count(), 2U);
}

TEST_F(FileSystemTest, AMountCanCoverTheRoot) {
  LayoutBuilder builder;
  ASSERT_EQ(*builder.add_mount("/"), 0U);
  EXPECT_FALSE(builder.add_directory("/x").ok());
  use(builder.build());
  ASSERT_EQ(write("/f", "x"), Errno::kSuccess);
  EXPECT_EQ(*files().real_path("/../f"), "/f");
  EXPECT_THAT(names("/"), ElementsAre("f"));
  EXPECT_EQ(files().device_of(root().mount), 2U);
}

TEST_F(FileSystemTest, AFileMayHaveFilesBelowItsOwnPath) {
  LayoutBuilder builder = standard_layout();
  ASSERT_TRUE(builder.add_file("/lib/a.zip", SharedBytes::own({std::byte{'z'}})).ok());
  ASSERT_TRUE(builder.add_file("/lib/a.zip/data/inner", SharedBytes::own({std::byte{'i'}})).ok());
  use(builder.build());
  EXPECT_EQ(files().stat("/lib/a.zip")->type, FileType::kRegularFile);
  EXPECT_EQ(read("/lib/a.zip"), "z");
  EXPECT_EQ(read("/lib/a.zip/data/inner"), "i");
  EXPECT_EQ(read("/lib/a.zip/data/../data/inner"), "i");
  EXPECT_EQ(read("/lib/a.zip/none"), "ENOENT");
  EXPECT_EQ(read("/lib/a.zip/"), "ENOTDIR");
  EXPECT_THAT(names("/lib"), ElementsAre("a.zip"));
  EXPECT_THAT(names("/lib/a.zip"), ElementsAre("ENOTDIR"));
  EXPECT_THAT(names("/lib/a.zip/data"), ElementsAre("inner"));
  EXPECT_EQ(*files().real_path("/lib/a.zip/data/inner"), "/lib/a.zip/data/inner");
}

}  // namespace
}  // namespace sw::wasi
