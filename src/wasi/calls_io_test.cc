// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Reading and writing: what it does, and its errors. Bad pointers are in pointers_test.cc.

#include <gtest/gtest.h>

#include <string>

#include "wasi/functions_fixture.h"

namespace sw::wasi {
namespace {

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

}  // namespace
}  // namespace sw::wasi
