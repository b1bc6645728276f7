// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/host/input_stream.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>

#include "sandbox_workers/host.h"

namespace sw {
namespace {

bool is_readable(const InputStream& input) {
  pollfd watched{input.poll_fd(), POLLIN, 0};
  return ::poll(&watched, 1, 0) == 1;
}

std::string read_some(InputStream& input, std::size_t bytes_max) {
  std::string text(bytes_max, '\0');
  const auto got = input.read(std::as_writable_bytes(std::span(text)));
  text.resize(got.ok() ? *got : 0);
  return text;
}

TEST(InputStream, GivesWhatWasWrittenInPieces) {
  const auto input = InputStream::create().value();
  EXPECT_FALSE(is_readable(*input));
  ASSERT_TRUE(input->write("abc").ok());
  EXPECT_TRUE(is_readable(*input));
  EXPECT_EQ(input->ready_bytes(), 3U);
  EXPECT_EQ(read_some(*input, 2), "ab");
  EXPECT_TRUE(is_readable(*input));
  EXPECT_EQ(read_some(*input, 2), "c");
  EXPECT_FALSE(is_readable(*input));
}

TEST(InputStream, EndsWhenItIsClosed) {
  const auto input = InputStream::create().value();
  ASSERT_TRUE(input->write("x").ok());
  input->close();
  EXPECT_EQ(read_some(*input, 9), "x");
  EXPECT_TRUE(is_readable(*input));
  std::array<std::byte, 1> byte{};
  EXPECT_EQ(input->read(byte).value(), 0U);
  EXPECT_EQ(input->write("y").error().code, ErrorCode::kInvalidArgument);
}

TEST(InputStream, KeepsNoMoreThanItsLimit) {
  const auto input = InputStream::create().value();
  ASSERT_TRUE(input->write(std::string(InputStream::kBytesMax, 'x')).ok());
  EXPECT_EQ(input->write("y").error().code, ErrorCode::kLimitExceeded);
}

TEST(InputStream, AProgramWaitsForWhatItReads) {
  const Host host = Host::open({.runs_at_once = 1}).value();
  const auto input = InputStream::create().value();
  sw::Run reader{.language = "js", .code = "fs.readFileSync(0, 'utf8')"};
  reader.input = input;
  RunOutput printed;
  RunHandle run = host.start(reader, printed);
  // It waits for its input, so another can run meanwhile.
  EXPECT_EQ(host.run({.language = "js", .code = "1"})->value->text, "1");
  ASSERT_TRUE(input->write("one ").ok());
  ASSERT_TRUE(input->write("two").ok());
  input->close();
  EXPECT_EQ(run.wait()->value->text, "'one two'");
}

}  // namespace
}  // namespace sw
