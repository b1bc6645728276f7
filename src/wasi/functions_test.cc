// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Each function of preview 1 as a guest calls it: what it does, and its errors. Bad pointers are in
// pointers_test.cc, clocks and waiting in clocks_test.cc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "wasi/descriptors.h"
#include "wasi/guest_support.h"

namespace sw::wasi {
namespace {

using ::testing::ElementsAre;

constexpr std::uint32_t kCreate = 1;
constexpr std::uint32_t kDirectory = 2;
constexpr std::uint32_t kExclusive = 4;
constexpr std::uint32_t kTruncate = 8;

using Functions = GuestTest;

TEST_F(Functions, ArgsAreGiven) {
  start({.args = {"prog", "", "a b"}});
  EXPECT_EQ(call("args_sizes_get", {kResult, kResult + 4}), Errno::kSuccess);
  EXPECT_EQ(u32(kResult), 3U);
  EXPECT_EQ(u32(kResult + 4), 10U);
  EXPECT_EQ(call("args_get", {kResult, kBuffer}), Errno::kSuccess);
  EXPECT_EQ(text(kBuffer, 10), std::string("prog\0\0a b\0", 10));
  EXPECT_EQ(u32(kResult), kBuffer);
  EXPECT_EQ(u32(kResult + 4), kBuffer + 5);
  EXPECT_EQ(u32(kResult + 8), kBuffer + 6);
}

TEST_F(Functions, EnvironmentIsGivenWhole) {
  start({.env = {"K=a'b\n\"c\\ \xC3\xA9", "EMPTY="}});
  EXPECT_EQ(call("environ_sizes_get", {kResult, kResult + 4}), Errno::kSuccess);
  EXPECT_EQ(u32(kResult), 2U);
  EXPECT_EQ(u32(kResult + 4), 20U);
  EXPECT_EQ(call("environ_get", {kResult, kBuffer}), Errno::kSuccess);
  EXPECT_EQ(text(kBuffer, 20), std::string("K=a'b\n\"c\\ \xC3\xA9\0EMPTY=\0", 20));
}

TEST_F(Functions, NoArgsAndNoEnvironmentAreFine) {
  EXPECT_EQ(call("args_sizes_get", {kResult, kResult + 4}), Errno::kSuccess);
  EXPECT_EQ(u32(kResult), 0U);
  EXPECT_EQ(u32(kResult + 4), 0U);
  EXPECT_EQ(call("args_get", {kGuestMemoryBytes, kGuestMemoryBytes}), Errno::kSuccess);
}

TEST_F(Functions, ArgumentsWithNulAreRefused) {
  EXPECT_FALSE(wasi().start_run({.args = {std::string("a\0b", 3)}}).ok());
  EXPECT_FALSE(wasi().start_run({.env = {std::string("a\0b", 3)}}).ok());
}

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

TEST_F(Functions, FdPreadLeavesThePosition) {
  ASSERT_EQ(host_write("/workspace/f", "abcdef"), Errno::kSuccess);
  const auto fd = open("workspace/f");
  buffer(3);
  EXPECT_EQ(call("fd_pread", {fd, kIovs, 1, 2, kResult}), Errno::kSuccess);
  EXPECT_EQ(text(kBuffer, u32(kResult)), "cde");
  EXPECT_EQ(call("fd_pread", {fd, kIovs, 1, 5, kResult}), Errno::kSuccess);
  EXPECT_EQ(text(kBuffer, u32(kResult)), "f");
  EXPECT_EQ(call("fd_pread", {fd, kIovs, 1, 1'000'000, kResult}), Errno::kSuccess);
  EXPECT_EQ(u32(kResult), 0U);
  EXPECT_EQ(call("fd_pread", {fd, kIovs, 1, UINT64_MAX, kResult}), Errno::kInval);
  EXPECT_EQ(call("fd_pread", {0, kIovs, 1, 0, kResult}), Errno::kSpipe);
  EXPECT_EQ(call("fd_pread", {3, kIovs, 1, 0, kResult}), Errno::kIsdir);
  EXPECT_EQ(read(fd), "abcdef");
}

TEST_F(Functions, FdPwriteLeavesThePosition) {
  const auto fd = open("workspace/f", {.oflags = kCreate});
  ASSERT_EQ(write(fd, "abc"), Errno::kSuccess);
  buffer("XY");
  EXPECT_EQ(call("fd_pwrite", {fd, kIovs, 1, 5, kResult}), Errno::kSuccess);
  EXPECT_EQ(host_read("/workspace/f"), std::string("abc\0\0XY", 7));
  ASSERT_EQ(write(fd, "d"), Errno::kSuccess);
  EXPECT_EQ(host_read("/workspace/f"), std::string("abcd\0XY", 7));
  EXPECT_EQ(call("fd_pwrite", {fd, kIovs, 1, UINT64_MAX, kResult}), Errno::kInval);
  EXPECT_EQ(call("fd_pwrite", {1, kIovs, 1, 0, kResult}), Errno::kSpipe);
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

TEST_F(Functions, FdReadFillsSeveralBuffersAndMovesThePosition) {
  ASSERT_EQ(host_write("/workspace/f", "abcdef"), Errno::kSuccess);
  const auto fd = open("workspace/f");
  store(kIovs, kBuffer);
  store(kIovs + 4, 2U);
  store(kIovs + 8, kBuffer + 100);
  store(kIovs + 12, 0U);
  store(kIovs + 16, kBuffer + 10);
  store(kIovs + 20, 3U);
  EXPECT_EQ(call("fd_read", {fd, kIovs, 3, kResult}), Errno::kSuccess);
  EXPECT_EQ(u32(kResult), 5U);
  EXPECT_EQ(text(kBuffer, 2), "ab");
  EXPECT_EQ(text(kBuffer + 10, 3), "cde");
  EXPECT_EQ(read(fd), "f");
  EXPECT_EQ(read(fd), "");
  EXPECT_EQ(call("fd_read", {fd, kIovs, 0, kResult}), Errno::kSuccess);
  EXPECT_EQ(call("fd_read", {fd, kIovs, 1025, kResult}), Errno::kInval);
  EXPECT_EQ(read(3), "EISDIR");
  EXPECT_EQ(read(1), "EBADF");
  EXPECT_EQ(read(99), "EBADF");
  EXPECT_EQ(read(open("workspace/f", {.base = rights::kFdWrite})), "EBADF");
}

TEST_F(Functions, FdReadGivesStdinUntilItsEnd) {
  BytesInput input("line\nrest");
  start({.input = &input});
  EXPECT_EQ(read(0, 5), "line\n");
  EXPECT_EQ(read(0), "rest");
  EXPECT_EQ(read(0), "");
  EXPECT_EQ(read(open("dev/stdin")), "");
  start({});
  EXPECT_EQ(read(0), "");
}

TEST_F(Functions, DevicesRead) {
  EXPECT_EQ(read(open("dev/null")), "");
  EXPECT_EQ(read(open("dev/zero"), 4), std::string(4, '\0'));
  const std::string random = read(open("dev/urandom"), 32);
  EXPECT_EQ(random.size(), 32U);
  EXPECT_NE(random, read(open("dev/random"), 32));
  EXPECT_EQ(read(open("dev/stdout")), "EBADF");
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

TEST_F(Functions, FdWriteWritesWhatTheLimitsLeaveRoomFor) {
  workspace_->set_limits({.file_bytes_max = 5});
  const auto fd = open("workspace/f", {.oflags = kCreate});
  store(kIovs, kBuffer);
  store(kIovs + 4, 3U);
  store(kIovs + 8, kBuffer + 3);
  store(kIovs + 12, 3U);
  put(kBuffer, "abcdef");
  EXPECT_EQ(call("fd_write", {fd, kIovs, 2, kResult}), Errno::kSuccess);
  EXPECT_EQ(u32(kResult), 5U);
  EXPECT_EQ(call("fd_write", {fd, kIovs, 2, kResult}), Errno::kFbig);
  EXPECT_EQ(host_read("/workspace/f"), "abcde");
  EXPECT_EQ(write(0, "x"), Errno::kBadf);
  EXPECT_EQ(write(3, "x"), Errno::kIsdir);
  EXPECT_EQ(write(open("dev/null"), "x"), Errno::kSuccess);
  EXPECT_EQ(u32(kResult), 1U);
  EXPECT_EQ(write(open("dev/stderr"), "to stderr"), Errno::kSuccess);
  EXPECT_EQ(output_.err, "to stderr");
}

TEST_F(Functions, OutputArrivesAsItIsWritten) {
  ASSERT_EQ(write(1, "one"), Errno::kSuccess);
  EXPECT_EQ(output_.out, "one");
  ASSERT_EQ(write(2, "two"), Errno::kSuccess);
  EXPECT_EQ(output_.err, "two");
  EXPECT_EQ(wasi().output_bytes(), 6U);
  EXPECT_FALSE(wasi().output_truncated());
}

TEST_F(Functions, OutputPastItsLimitIsDroppedAndTheGuestGoesOn) {
  start({.limits = {.output_bytes_max = 5}});
  ASSERT_EQ(write(1, "abcde"), Errno::kSuccess);
  EXPECT_FALSE(wasi().output_truncated());
  ASSERT_EQ(write(2, "f"), Errno::kSuccess);
  EXPECT_EQ(u32(kResult), 1U);
  EXPECT_TRUE(wasi().output_truncated());
  EXPECT_EQ(output_.out + output_.err, "abcde");
}

TEST_F(Functions, OutputPastItsLimitEndsTheRunWhenAskedTo) {
  start({.limits = {.output_bytes_max = 5, .output_overflow = OutputOverflow::kEndRun}});
  ASSERT_EQ(write(1, "abcde"), Errno::kSuccess);
  buffer("f");
  const auto ended = call_raw("fd_write", {1, kIovs, 1, kResult});
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, ErrorCode::kLimitExceeded);
  EXPECT_EQ(output_.out, "abcde");
}

TEST_F(Functions, LargeOutputIsPassedOnWhole) {
  const std::string big(40'000, 'x');
  put(kBuffer, big);
  for (std::uint32_t i = 0; i < 8; ++i) {
    store(kIovs + 8 * i, kBuffer);
    store(kIovs + 8 * i + 4, static_cast<std::uint32_t>(big.size()));
  }
  ASSERT_EQ(call("fd_write", {1, kIovs, 8, kResult}), Errno::kSuccess);
  EXPECT_EQ(u32(kResult), 320'000U);
  EXPECT_EQ(output_.out.size(), 320'000U);
}

class FailingSink final : public OutputSink {
 public:
  Errno write(Stream, BytesView) override { return Errno::kPipe; }
};

TEST_F(Functions, AClosedOutputIsAnErrorForTheGuest) {
  FailingSink sink;
  start({.output = &sink});
  EXPECT_EQ(write(1, "x"), Errno::kPipe);
}

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

TEST_F(Functions, ProcExitEndsTheRunWithItsStatus) {
  const auto ended = call_raw("proc_exit", {7});
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, ErrorCode::kGuestExit);
  EXPECT_EQ(ended.error().exit_code, 7);
}

TEST_F(Functions, ProcRaiseAndSchedYield) {
  EXPECT_EQ(call("proc_raise", {6}), Errno::kNosys);
  EXPECT_EQ(call("sched_yield", {}), Errno::kSuccess);
}

TEST_F(Functions, RandomGetFillsExactlyTheBuffer) {
  EXPECT_EQ(call("random_get", {kBuffer, 10'000}), Errno::kSuccess);
  const std::string first = text(kBuffer, 10'000);
  EXPECT_NE(first, std::string(10'000, '\0'));
  EXPECT_EQ(text(kBuffer + 10'000, 16), std::string(16, '\0'));
  EXPECT_EQ(call("random_get", {kBuffer, 10'000}), Errno::kSuccess);
  EXPECT_NE(text(kBuffer, 10'000), first);
  EXPECT_EQ(call("random_get", {kGuestMemoryBytes, 0}), Errno::kSuccess);
}

TEST_F(Functions, ThereAreNoSockets) {
  buffer(10);
  for (const auto& [fd, expected] : {std::pair(1, Errno::kNotsock), std::pair(3, Errno::kNotsock),
                                     std::pair(99, Errno::kBadf)}) {
    const auto number = static_cast<std::uint64_t>(fd);
    EXPECT_EQ(call("sock_accept", {number, 0, kResult}), expected);
    EXPECT_EQ(call("sock_recv", {number, kIovs, 1, 0, kResult, kResult + 8}), expected);
    EXPECT_EQ(call("sock_send", {number, kIovs, 1, 0, kResult}), expected);
    EXPECT_EQ(call("sock_shutdown", {number, 1}), expected);
  }
}

TEST_F(Functions, StaleAndDisabledFilesAnswerSo) {
  ASSERT_EQ(host_write("/workspace/f", "abc"), Errno::kSuccess);
  const auto fd = open("workspace/f");
  workspace_->set_disabled(true);
  EXPECT_EQ(read(fd), "EACCES");
  EXPECT_EQ(call("fd_filestat_get", {fd, kResult}), Errno::kAcces);
  EXPECT_EQ(open_errno("workspace/f", {}), Errno::kAcces);
  workspace_->set_disabled(false);
  wasi().descriptors().find(fd)->stale = true;
  EXPECT_EQ(read(fd), "ESTALE");
  EXPECT_EQ(call("fd_seek", {fd, 0, 0, kResult}), Errno::kStale);
  EXPECT_EQ(call("fd_close", {fd}), Errno::kSuccess);
}

TEST_F(Functions, ANewRunFindsNothingOfTheLast) {
  ASSERT_EQ(host_write("/tmp/f", "x"), Errno::kSuccess);
  ASSERT_EQ(write(1, "out"), Errno::kSuccess);
  open("tmp/f");
  ASSERT_TRUE(wasi().start_run({}).ok());
  EXPECT_EQ(open_errno("tmp/f", {}), Errno::kNoent);
  EXPECT_EQ(wasi().descriptors().open_count(), 4U);
  EXPECT_EQ(wasi().output_bytes(), 0U);
}

TEST_F(Functions, AContinuedRunKeepsItsFilesAndGetsNewStreams) {
  const auto fd = open("tmp/f", {.oflags = kCreate});
  ASSERT_EQ(write(fd, "ab"), Errno::kSuccess);
  ASSERT_EQ(write(1, "first"), Errno::kSuccess);
  ASSERT_EQ(wasi().descriptors().close(1), Errno::kSuccess);
  BufferSink second;
  ASSERT_TRUE(wasi().continue_run({.env = {"K=V"}, .output = &second}).ok());
  ASSERT_EQ(write(fd, "c"), Errno::kSuccess);
  ASSERT_EQ(write(1, "second"), Errno::kSuccess);
  EXPECT_EQ(host_read("/tmp/f"), "abc");
  EXPECT_EQ(output_.out, "first");
  EXPECT_EQ(second.out, "second");
  EXPECT_EQ(wasi().output_bytes(), 6U);
  EXPECT_TRUE(files().exists("/workspace"));
}

}  // namespace
}  // namespace sw::wasi
