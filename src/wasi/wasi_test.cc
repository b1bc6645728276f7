// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Files that are stale or disabled, and one run after another.

#include <gtest/gtest.h>

#include "wasi/functions_fixture.h"

namespace sw::wasi {
namespace {

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
