// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// The functions of the process: what they do, and their errors. Bad pointers are in
// pointers_test.cc, clocks and waiting in clocks_test.cc.

#include <gtest/gtest.h>

#include <string>

#include "wasi/functions_fixture.h"

namespace sw::wasi {
namespace {

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

}  // namespace
}  // namespace sw::wasi
