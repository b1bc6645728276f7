// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// The functions of paths: what they do, and their errors. Bad pointers are in pointers_test.cc.

#include <gtest/gtest.h>

#include "wasi/descriptors.h"
#include "wasi/functions_fixture.h"

namespace sw::wasi {
namespace {

TEST_F(Functions, PathCreateAndRemoveDirectory) {
  put(kPath, "workspace/d");
  EXPECT_EQ(call("path_create_directory", {3, kPath, 11}), Errno::kSuccess);
  EXPECT_EQ(call("path_create_directory", {3, kPath, 11}), Errno::kExist);
  EXPECT_EQ(call("path_remove_directory", {3, kPath, 11}), Errno::kSuccess);
  EXPECT_EQ(call("path_remove_directory", {3, kPath, 11}), Errno::kNoent);
  EXPECT_EQ(call("path_create_directory", {99, kPath, 11}), Errno::kBadf);
  EXPECT_EQ(call("path_create_directory", {1, kPath, 11}), Errno::kNotdir);
  EXPECT_EQ(call("path_create_directory", {3, kPath, 0}), Errno::kNoent);
  EXPECT_EQ(call("path_create_directory", {3, 0, kPathBytesMax + 1}), Errno::kNametoolong);
  put(kPath, "new");
  EXPECT_EQ(call("path_create_directory", {3, kPath, 3}), Errno::kRofs);
}

TEST_F(Functions, PathFilestatGetFollowsIfAsked) {
  ASSERT_EQ(host_write("/workspace/f", "abc"), Errno::kSuccess);
  ASSERT_EQ(files().symlink("f", "/workspace/l"), Errno::kSuccess);
  put(kPath, "workspace/l");
  EXPECT_EQ(call("path_filestat_get", {3, 1, kPath, 11, kResult}), Errno::kSuccess);
  EXPECT_EQ(load<std::uint8_t>(kResult + 16), 4);
  EXPECT_EQ(u64(kResult + 32), 3U);
  EXPECT_EQ(call("path_filestat_get", {3, 0, kPath, 11, kResult}), Errno::kSuccess);
  EXPECT_EQ(load<std::uint8_t>(kResult + 16), 7);
  EXPECT_EQ(call("path_filestat_get", {3, 2, kPath, 11, kResult}), Errno::kInval);
}

TEST_F(Functions, PathFilestatSetTimes) {
  ASSERT_EQ(host_write("/workspace/f", ""), Errno::kSuccess);
  put(kPath, "workspace/f");
  EXPECT_EQ(call("path_filestat_set_times", {3, 1, kPath, 11, 1, 2, 1 | 4}), Errno::kSuccess);
  EXPECT_EQ(files().stat("/workspace/f")->times.accessed, 1U);
  EXPECT_EQ(files().stat("/workspace/f")->times.modified, 2U);
  EXPECT_EQ(call("path_filestat_set_times", {3, 1, kPath, 11, 1, 2, 4 | 8}), Errno::kInval);
  put(kPath, "dev");
  EXPECT_EQ(call("path_filestat_set_times", {3, 1, kPath, 3, 1, 2, 1}), Errno::kRofs);
}

TEST_F(Functions, PathLink) {
  ASSERT_EQ(host_write("/workspace/f", "abc"), Errno::kSuccess);
  put(kPath, "workspace/f");
  put(kPath2, "workspace/g");
  EXPECT_EQ(call("path_link", {3, 0, kPath, 11, 3, kPath2, 11}), Errno::kSuccess);
  EXPECT_EQ(files().stat("/workspace/g")->links, 2U);
  EXPECT_EQ(call("path_link", {3, 0, kPath, 11, 3, kPath2, 11}), Errno::kExist);
  put(kPath2, "tmp/g");
  EXPECT_EQ(call("path_link", {3, 0, kPath, 11, 3, kPath2, 5}), Errno::kXdev);
}

TEST_F(Functions, PathOpenCreatesAndTruncates) {
  const auto fd = open("workspace/f", {.oflags = kCreate | kExclusive});
  ASSERT_EQ(write(fd, "abc"), Errno::kSuccess);
  EXPECT_EQ(open_errno("workspace/f", {.oflags = kCreate | kExclusive}), Errno::kExist);
  open("workspace/f", {.oflags = kTruncate});
  EXPECT_EQ(host_read("/workspace/f"), "");
  EXPECT_EQ(open_errno("workspace/f", {.oflags = kDirectory}), Errno::kNotdir);
  EXPECT_EQ(open_errno("workspace/f", {.oflags = 16}), Errno::kInval);
  EXPECT_EQ(open_errno("workspace/f", {.flags = 32}), Errno::kInval);
  EXPECT_EQ(open_errno("workspace/f", {.lookup = 2}), Errno::kInval);
  EXPECT_EQ(open_errno("/workspace/f", {}), Errno::kNotcapable);
  EXPECT_EQ(open_errno("workspace/f", {.at = fd}), Errno::kNotdir);
  EXPECT_EQ(open_errno("workspace/f", {.at = 0}), Errno::kNotdir);
  EXPECT_EQ(open_errno("workspace/f", {.at = 99}), Errno::kBadf);
  EXPECT_EQ(open_errno("workspace", {.base = rights::kFdRead | rights::kFdWrite}), Errno::kIsdir);
  EXPECT_EQ(open_errno("new", {.oflags = kCreate}), Errno::kRofs);
}

TEST_F(Functions, PathOpenGivesNoMoreRightsThanTheDirectoryPassesOn) {
  ASSERT_EQ(host_write("/workspace/f", ""), Errno::kSuccess);
  const auto directory = open("workspace", {.oflags = kDirectory,
                                            .base = rights::kPathOpen,
                                            .inheriting = rights::kFdRead | rights::kFdSeek});
  EXPECT_EQ(open_errno("f", {.base = rights::kFdRead, .at = directory}), Errno::kSuccess);
  EXPECT_EQ(open_errno("f", {.base = rights::kFdWrite, .at = directory}), Errno::kNotcapable);
  EXPECT_EQ(open_errno(".", {.base = 0, .inheriting = rights::kFdWrite, .at = directory}),
            Errno::kNotcapable);
  EXPECT_EQ(open_errno("g", {.oflags = kCreate, .base = 0, .at = directory}), Errno::kNotcapable);
  EXPECT_EQ(open_errno("f", {.oflags = kTruncate, .base = 0, .at = directory}), Errno::kNotcapable);
  put(kPath, "f");
  EXPECT_EQ(call("path_unlink_file", {directory, kPath, 1}), Errno::kNotcapable);
  EXPECT_EQ(call("path_filestat_get", {directory, 0, kPath, 1, kResult}), Errno::kNotcapable);
  // Bits that mean nothing are no rights.
  EXPECT_EQ(open_errno("workspace/f", {.base = rights::kFdRead, .inheriting = ~Rights{0}}),
            Errno::kSuccess);
}

TEST_F(Functions, PathOpenStopsAtTheLimitOfOpenFiles) {
  start({.limits = {.open_files_max = 6}});
  ASSERT_EQ(host_write("/workspace/f", ""), Errno::kSuccess);
  open("workspace/f");
  open("workspace/f");
  EXPECT_EQ(open_errno("workspace/f", {}), Errno::kMfile);
  EXPECT_EQ(open_errno("workspace/new", {.oflags = kCreate}), Errno::kMfile);
  EXPECT_FALSE(files().exists("/workspace/new"));
  EXPECT_EQ(call("fd_close", {4}), Errno::kSuccess);
  EXPECT_EQ(open("workspace/f"), 4U);
}

TEST_F(Functions, PathReadlinkCutsToTheBuffer) {
  ASSERT_EQ(files().symlink("target", "/workspace/l"), Errno::kSuccess);
  put(kPath, "workspace/l");
  EXPECT_EQ(call("path_readlink", {3, kPath, 11, kBuffer, 100, kResult}), Errno::kSuccess);
  EXPECT_EQ(text(kBuffer, u32(kResult)), "target");
  EXPECT_EQ(call("path_readlink", {3, kPath, 11, kBuffer, 3, kResult}), Errno::kSuccess);
  EXPECT_EQ(u32(kResult), 3U);
  put(kPath, "workspace");
  EXPECT_EQ(call("path_readlink", {3, kPath, 9, kBuffer, 3, kResult}), Errno::kInval);
}

TEST_F(Functions, PathRename) {
  ASSERT_EQ(host_write("/workspace/f", "abc"), Errno::kSuccess);
  put(kPath, "workspace/f");
  put(kPath2, "workspace/g");
  EXPECT_EQ(call("path_rename", {3, kPath, 11, 3, kPath2, 11}), Errno::kSuccess);
  EXPECT_EQ(call("path_rename", {3, kPath, 11, 3, kPath2, 11}), Errno::kNoent);
  EXPECT_EQ(host_read("/workspace/g"), "abc");
}

TEST_F(Functions, PathSymlinkMayBeAbsoluteUnlessRefused) {
  put(kPath, "/workspace/f");
  put(kPath2, "workspace/l");
  EXPECT_EQ(call("path_symlink", {kPath, 12, 3, kPath2, 11}), Errno::kSuccess);
  EXPECT_EQ(call("path_symlink", {kPath, 12, 3, kPath2, 11}), Errno::kExist);
  ASSERT_EQ(host_write("/workspace/f", "abc"), Errno::kSuccess);
  EXPECT_EQ(read(open("workspace/l")), "abc");
  start({}, {.absolute_links = AbsoluteLinks::kRefuse});
  put(kPath, "/workspace/f");
  put(kPath2, "workspace/l");
  EXPECT_EQ(call("path_symlink", {kPath, 12, 3, kPath2, 11}), Errno::kNotcapable);
  EXPECT_EQ(call("path_symlink", {kPath + 1, 11, 3, kPath2, 11}), Errno::kSuccess);
}

TEST_F(Functions, PathUnlinkFileKeepsOpenFiles) {
  ASSERT_EQ(host_write("/workspace/f", "abc"), Errno::kSuccess);
  const auto fd = open("workspace/f");
  put(kPath, "workspace/f");
  EXPECT_EQ(call("path_unlink_file", {3, kPath, 11}), Errno::kSuccess);
  EXPECT_EQ(call("path_unlink_file", {3, kPath, 11}), Errno::kNoent);
  EXPECT_EQ(read(fd), "abc");
  put(kPath, "workspace");
  EXPECT_EQ(call("path_unlink_file", {3, kPath, 9}), Errno::kIsdir);
}

}  // namespace
}  // namespace sw::wasi
