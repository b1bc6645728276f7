// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "base/standard_streams.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <thread>

#include "sandbox_workers/base/unique_fd.h"

namespace sw {
namespace {

TEST(WriteAll, WritesAllAlsoThroughAPipeThatDoesNotBlock) {
  int ends[2] = {};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  const std::string text(1 << 20, 'x');
  std::thread writer([&] {
    EXPECT_EQ(write_all(to.get(), as_bytes(text)), 0);
    to = UniqueFd();
  });
  std::string got;
  char block[4096];
  for (;;) {
    const ssize_t count = ::read(from.get(), block, sizeof block);
    if (count == 0) break;
    if (count > 0) got.append(block, static_cast<std::size_t>(count));
    else std::this_thread::yield();
  }
  writer.join();
  EXPECT_EQ(got, text);
}

TEST(WriteAll, GivesTheErrno) {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(write_all(full.get(), as_bytes("x")), ENOSPC);
  EXPECT_EQ(write_all(-1, as_bytes("x")), EBADF);
  EXPECT_EQ(write_all(-1, {}), 0);
}

TEST(CannotPrint, IsTheHostsFaultAndSaysWhy) {
  EXPECT_EQ(cannot_print(EACCES).code, ErrorCode::kUnavailable);
  EXPECT_EQ(cannot_print(ENOSPC).message,
            "cannot write to standard output: No space left on device");
}

}  // namespace
}  // namespace sw
