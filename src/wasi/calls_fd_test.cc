// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// The functions of descriptors: what they do, and their errors. Bad pointers are in
// pointers_test.cc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "wasi/descriptors.h"
#include "wasi/functions_fixture.h"

namespace sw::wasi {
namespace {

using ::testing::ElementsAre;
TEST_F(Functions, FdAdvise) {
  ASSERT_EQ(host_write("/workspace/f", "x"), Errno::kSuccess);
  const auto fd = open("workspace/f");
  for (std::uint64_t advice = 0; advice <= 5; ++advice) {
    EXPECT_EQ(call("fd_advise", {fd, 0, 0, advice}), Errno::kSuccess);
  }
  EXPECT_EQ(call("fd_advise", {fd, 0, 0, 6}), Errno::kInval);
  EXPECT_EQ(call("fd_advise", {fd, 1, INT64_MAX, 0}), Errno::kInval);
  EXPECT_EQ(call("fd_advise", {1, 0, 0, 0}), Errno::kSpipe);
  EXPECT_EQ(call("fd_advise", {3, 0, 0, 0}), Errno::kIsdir);
  EXPECT_EQ(call("fd_advise", {99, 0, 0, 0}), Errno::kBadf);
}

TEST_F(Functions, FdAllocateGrowsAndNeverShrinks) {
  workspace_->set_limits({.file_bytes_max = 100});
  const auto fd = open("workspace/f", {.oflags = kCreate});
  EXPECT_EQ(call("fd_allocate", {fd, 0, 10}), Errno::kSuccess);
  EXPECT_EQ(call("fd_allocate", {fd, 2, 3}), Errno::kSuccess);
  EXPECT_EQ(host_read("/workspace/f"), std::string(10, '\0'));
  EXPECT_EQ(call("fd_allocate", {fd, 90, 10}), Errno::kSuccess);
  EXPECT_EQ(call("fd_allocate", {fd, 90, 11}), Errno::kFbig);
  EXPECT_EQ(call("fd_allocate", {fd, 0, 0}), Errno::kInval);
  EXPECT_EQ(call("fd_allocate", {fd, 1, INT64_MAX}), Errno::kFbig);
  EXPECT_EQ(call("fd_allocate", {fd, UINT64_MAX, 1}), Errno::kInval);
  EXPECT_EQ(call("fd_allocate", {3, 0, 1}), Errno::kIsdir);
}

TEST_F(Functions, FdCloseClosesOnceAndPreopensToo) {
  EXPECT_EQ(call("fd_close", {3}), Errno::kSuccess);
  EXPECT_EQ(call("fd_close", {3}), Errno::kBadf);
  EXPECT_EQ(call("fd_close", {1}), Errno::kSuccess);
  EXPECT_EQ(write(1, "x"), Errno::kBadf);
}

TEST_F(Functions, FdSyncAndDatasyncNeedTheirRights) {
  const auto fd = open("workspace/f", {.oflags = kCreate, .base = rights::kFdSync});
  EXPECT_EQ(call("fd_sync", {fd}), Errno::kSuccess);
  EXPECT_EQ(call("fd_datasync", {fd}), Errno::kNotcapable);
  EXPECT_EQ(call("fd_datasync", {1}), Errno::kSuccess);
  EXPECT_EQ(call("fd_sync", {99}), Errno::kBadf);
  EXPECT_EQ(call("fd_datasync", {99}), Errno::kBadf);
}

TEST_F(Functions, FdFdstatGetDescribes) {
  const auto fd = open("workspace/f",
                       {.oflags = kCreate, .base = rights::kFdRead | rights::kFdSeek, .flags = 4});
  EXPECT_EQ(call("fd_fdstat_get", {fd, kResult}), Errno::kSuccess);
  EXPECT_EQ(load<std::uint8_t>(kResult), 4);
  EXPECT_EQ(load<std::uint16_t>(kResult + 2), fdflags::kNonblock);
  EXPECT_EQ(u64(kResult + 8), rights::kFdRead | rights::kFdSeek);
  EXPECT_EQ(u64(kResult + 16), 0U);
  EXPECT_EQ(call("fd_fdstat_get", {3, kResult}), Errno::kSuccess);
  EXPECT_EQ(load<std::uint8_t>(kResult), 3);
  EXPECT_EQ(u64(kResult + 16), rights::kDirectoryInheriting);
  EXPECT_EQ(call("fd_fdstat_get", {99, kResult}), Errno::kBadf);
}

TEST_F(Functions, StreamsAreNoTerminals) {
  // wasi-libc: a terminal is a character device that can neither be sought nor told.
  for (std::uint64_t fd = 0; fd <= 2; ++fd) {
    EXPECT_EQ(call("fd_fdstat_get", {fd, kResult}), Errno::kSuccess);
    EXPECT_EQ(load<std::uint8_t>(kResult), 2);
    EXPECT_NE(u64(kResult + 8) & (rights::kFdSeek | rights::kFdTell), 0U);
    EXPECT_EQ(call("fd_seek", {fd, 0, 1, kResult}), Errno::kSpipe);
    EXPECT_EQ(call("fd_tell", {fd, kResult}), Errno::kSpipe);
  }
}

TEST_F(Functions, FdFdstatSetFlagsTurnsAppendOnAndOff) {
  const auto fd = open("workspace/f", {.oflags = kCreate});
  ASSERT_EQ(write(fd, "abc"), Errno::kSuccess);
  EXPECT_EQ(call("fd_fdstat_set_flags", {fd, fdflags::kAppend}), Errno::kSuccess);
  EXPECT_EQ(call("fd_seek", {fd, 0, 0, kResult}), Errno::kSuccess);
  ASSERT_EQ(write(fd, "d"), Errno::kSuccess);
  EXPECT_EQ(call("fd_fdstat_set_flags", {fd, 0}), Errno::kSuccess);
  EXPECT_EQ(call("fd_seek", {fd, 0, 0, kResult}), Errno::kSuccess);
  ASSERT_EQ(write(fd, "X"), Errno::kSuccess);
  EXPECT_EQ(host_read("/workspace/f"), "Xbcd");
  EXPECT_EQ(call("fd_fdstat_set_flags", {fd, 32}), Errno::kInval);
}

TEST_F(Functions, FdFdstatSetRightsOnlyTakesAway) {
  const auto fd = open("workspace/f", {.oflags = kCreate});
  const Rights less = rights::kFile & ~rights::kFdWrite;
  EXPECT_EQ(call("fd_fdstat_set_rights", {fd, less, 0}), Errno::kSuccess);
  EXPECT_EQ(write(fd, "x"), Errno::kBadf);
  EXPECT_EQ(call("fd_fdstat_set_rights", {fd, rights::kFile, 0}), Errno::kNotcapable);
  EXPECT_EQ(call("fd_fdstat_set_rights", {fd, less, 1}), Errno::kNotcapable);
  EXPECT_EQ(call("fd_fdstat_set_rights", {99, 0, 0}), Errno::kBadf);
}

TEST_F(Functions, FdFilestatGetDescribes) {
  ASSERT_EQ(host_write("/workspace/f", "abc"), Errno::kSuccess);
  const auto fd = open("workspace/f");
  fixed_clocks_.realtime = 77;
  EXPECT_EQ(call("fd_filestat_get", {fd, kResult}), Errno::kSuccess);
  EXPECT_EQ(u64(kResult), 2U);
  EXPECT_EQ(u64(kResult + 8), files().stat("/workspace/f")->inode);
  EXPECT_EQ(u64(kResult + 16), 4U);  // the type and its padding
  EXPECT_EQ(u64(kResult + 24), 1U);
  EXPECT_EQ(u64(kResult + 32), 3U);
  EXPECT_EQ(u64(kResult + 48), 1'000'000U);
  EXPECT_EQ(call("fd_filestat_get", {0, kResult}), Errno::kSuccess);
  EXPECT_EQ(u64(kResult + 16), 2U);
  const auto poor = open("workspace/f", {.base = 0});
  EXPECT_EQ(call("fd_filestat_get", {poor, kResult}), Errno::kNotcapable);
}

TEST_F(Functions, FdFilestatSetSize) {
  workspace_->set_limits({.file_bytes_max = 10});
  const auto fd = open("workspace/f", {.oflags = kCreate});
  ASSERT_EQ(write(fd, "abcdef"), Errno::kSuccess);
  EXPECT_EQ(call("fd_filestat_set_size", {fd, 2}), Errno::kSuccess);
  EXPECT_EQ(call("fd_filestat_set_size", {fd, 4}), Errno::kSuccess);
  EXPECT_EQ(host_read("/workspace/f"), std::string("ab\0\0", 4));
  EXPECT_EQ(call("fd_filestat_set_size", {fd, 10}), Errno::kSuccess);
  EXPECT_EQ(call("fd_filestat_set_size", {fd, 11}), Errno::kFbig);
  EXPECT_EQ(call("fd_filestat_set_size", {fd, UINT64_MAX}), Errno::kInval);
  EXPECT_EQ(call("fd_filestat_set_size", {3, 0}), Errno::kIsdir);
}

TEST_F(Functions, FdFilestatSetTimes) {
  const auto fd = open("workspace/f", {.oflags = kCreate});
  fixed_clocks_.realtime = 5'000;
  EXPECT_EQ(call("fd_filestat_set_times", {fd, 11, 22, 1}), Errno::kSuccess);
  EXPECT_EQ(files().stat("/workspace/f")->times.accessed, 11U);
  EXPECT_EQ(files().stat("/workspace/f")->times.modified, 1'000'000U);
  EXPECT_EQ(call("fd_filestat_set_times", {fd, 11, 22, 2 | 4}), Errno::kSuccess);
  EXPECT_EQ(files().stat("/workspace/f")->times.accessed, 5'000U);
  EXPECT_EQ(files().stat("/workspace/f")->times.modified, 22U);
  EXPECT_EQ(call("fd_filestat_set_times", {fd, 0, 0, 8}), Errno::kSuccess);
  EXPECT_EQ(files().stat("/workspace/f")->times.modified, 5'000U);
  for (const std::uint64_t bad : {3U, 12U, 16U}) {
    EXPECT_EQ(call("fd_filestat_set_times", {fd, 0, 0, bad}), Errno::kInval) << bad;
  }
  EXPECT_EQ(call("fd_filestat_set_times", {3, 0, 0, 1}), Errno::kRofs);
  EXPECT_EQ(call("fd_filestat_set_times", {1, 0, 0, 1}), Errno::kNotcapable);
}

TEST_F(Functions, FdPrestat) {
  start({}, {.preopens = {{"/", "/"}, {"work", "/workspace"}}});
  EXPECT_EQ(call("fd_prestat_get", {4, kResult}), Errno::kSuccess);
  EXPECT_EQ(u32(kResult), 0U);
  EXPECT_EQ(u32(kResult + 4), 4U);
  EXPECT_EQ(call("fd_prestat_dir_name", {4, kBuffer, 4}), Errno::kSuccess);
  EXPECT_EQ(text(kBuffer, 4), "work");
  EXPECT_EQ(call("fd_prestat_dir_name", {4, kBuffer, 3}), Errno::kNametoolong);
  EXPECT_EQ(call("fd_prestat_dir_name", {4, kBuffer, 100}), Errno::kSuccess);
  for (const std::uint64_t fd : {1U, 5U, 99U}) {
    EXPECT_EQ(call("fd_prestat_get", {fd, kResult}), Errno::kBadf) << fd;
    EXPECT_EQ(call("fd_prestat_dir_name", {fd, kBuffer, 10}), Errno::kBadf) << fd;
  }
  const auto directory = open_directory("workspace");
  EXPECT_EQ(call("fd_prestat_get", {directory, kResult}), Errno::kBadf);
}

TEST_F(Functions, FdReaddirListsWithCookies) {
  for (const char* name : {"/workspace/a", "/workspace/bb", "/workspace/ccc"}) {
    ASSERT_EQ(host_write(name, ""), Errno::kSuccess);
  }
  const auto fd = open_directory("workspace");
  std::vector<std::string> seen;
  std::uint64_t cookie = 0;
  // Room for one entry and a half: the second is cut and must be asked for again.
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(call("fd_readdir", {fd, kBuffer, 40, cookie, kResult}), Errno::kSuccess);
    const std::uint32_t used = u32(kResult);
    if (used == 0) break;
    const std::uint32_t length = u32(kBuffer + 16);
    ASSERT_LE(24 + length, used);
    seen.push_back(text(kBuffer + 24, length));
    cookie = u64(kBuffer);
    if (used < 40) {
      EXPECT_EQ(used, 24 + length) << "the end";
    }
  }
  EXPECT_THAT(seen, ElementsAre(".", "..", "a", "bb", "ccc"));
  EXPECT_EQ(call("fd_readdir", {fd, kBuffer, 100, 2, kResult}), Errno::kSuccess);
  EXPECT_EQ(u64(kBuffer + 8), files().stat("/workspace/a")->inode);
  EXPECT_EQ(load<std::uint8_t>(kBuffer + 20), 4);
  EXPECT_EQ(call("fd_readdir", {fd, kBuffer, 0, 0, kResult}), Errno::kSuccess);
  EXPECT_EQ(u32(kResult), 0U);
  EXPECT_EQ(call("fd_readdir", {fd, kBuffer, 100, UINT64_MAX, kResult}), Errno::kSuccess);
  EXPECT_EQ(u32(kResult), 0U);
  EXPECT_EQ(call("fd_readdir", {open("workspace/a"), kBuffer, 100, 0, kResult}), Errno::kNotdir);
  EXPECT_EQ(call("fd_readdir", {1, kBuffer, 100, 0, kResult}), Errno::kNotdir);
  EXPECT_EQ(call("fd_readdir", {open("workspace", {.base = 0}), kBuffer, 100, 0, kResult}),
            Errno::kNotcapable);
}

TEST_F(Functions, FdReaddirGivesMountsTheInodeTheyHave) {
  EXPECT_EQ(call("fd_readdir", {3, kBuffer, 200, 2, kResult}), Errno::kSuccess);
  EXPECT_EQ(text(kBuffer + 24, 9), "workspace");
  EXPECT_EQ(u64(kBuffer + 8), files().stat("/workspace")->inode);
}

TEST_F(Functions, FdRenumber) {
  ASSERT_EQ(host_write("/workspace/f", "abc"), Errno::kSuccess);
  const auto fd = open("workspace/f");
  EXPECT_EQ(call("fd_renumber", {fd, 0}), Errno::kSuccess);
  EXPECT_EQ(read(0), "abc");
  EXPECT_EQ(call("fd_close", {fd}), Errno::kBadf);
  EXPECT_EQ(call("fd_renumber", {0, 77}), Errno::kBadf);
  EXPECT_EQ(call("fd_renumber", {77, 0}), Errno::kBadf);
}

TEST_F(Functions, FdSeekAndTell) {
  ASSERT_EQ(host_write("/workspace/f", "abcdef"), Errno::kSuccess);
  const auto fd = open("workspace/f");
  const auto seek = [&](std::int64_t offset, std::uint64_t whence) {
    return call("fd_seek", {fd, static_cast<std::uint64_t>(offset), whence, kResult});
  };
  EXPECT_EQ(seek(2, 0), Errno::kSuccess);
  EXPECT_EQ(u64(kResult), 2U);
  EXPECT_EQ(seek(-1, 1), Errno::kSuccess);
  EXPECT_EQ(u64(kResult), 1U);
  EXPECT_EQ(seek(-2, 2), Errno::kSuccess);
  EXPECT_EQ(read(fd), "ef");
  EXPECT_EQ(seek(100, 2), Errno::kSuccess);
  EXPECT_EQ(call("fd_tell", {fd, kResult}), Errno::kSuccess);
  EXPECT_EQ(u64(kResult), 106U);
  EXPECT_EQ(seek(-107, 1), Errno::kInval);
  EXPECT_EQ(seek(INT64_MAX, 1), Errno::kOverflow);
  EXPECT_EQ(seek(0, 3), Errno::kInval);
  EXPECT_EQ(call("fd_seek", {3, 0, 0, kResult}), Errno::kIsdir);
  EXPECT_EQ(call("fd_tell", {3, kResult}), Errno::kIsdir);
  const auto only_tells = open("workspace/f", {.base = rights::kFdTell});
  EXPECT_EQ(call("fd_seek", {only_tells, 0, 1, kResult}), Errno::kSuccess);
  EXPECT_EQ(call("fd_seek", {only_tells, 1, 1, kResult}), Errno::kNotcapable);
  EXPECT_EQ(call("fd_tell", {open("workspace/f", {.base = 0}), kResult}), Errno::kNotcapable);
  EXPECT_EQ(call("fd_seek", {open("dev/zero"), 5, 0, kResult}), Errno::kSuccess);
  EXPECT_EQ(u64(kResult), 0U);
}

}  // namespace
}  // namespace sw::wasi
