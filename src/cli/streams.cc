// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/streams.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/standard_streams.h"

namespace sw::cli {

namespace {

constexpr std::size_t kKeptBytesMax = std::size_t{64} << 10;
// What a pipe takes at once when it can be written.
constexpr std::size_t kWriteBytesMax = 4096;

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

}  // namespace

int Streams::wait(int fd, short events) const {
  std::array<pollfd, 2> watched = {pollfd{.fd = fd, .events = events, .revents = 0},
                                   pollfd{.fd = files_.gone, .events = POLLIN, .revents = 0}};
  while (::poll(watched.data(), watched.size(), -1) < 0 && errno == EINTR) {
  }
  return watched[1].revents != 0 ? ECANCELED : 0;
}

int Streams::write_now(int fd, BytesView bytes) const {
  if (files_.gone < 0) return write_all(fd, bytes);
  while (!bytes.empty()) {
    // To the program it is a reader that went away.
    if (wait(fd, POLLOUT) != 0) return EPIPE;
    const ssize_t put = ::write(fd, bytes.data(), std::min(bytes.size(), kWriteBytesMax));
    if (put >= 0) bytes = bytes.subspan(static_cast<std::size_t>(put));
    else if (errno != EINTR && errno != EAGAIN) return errno;
  }
  return 0;
}

int Streams::write(wasi::Stream stream, BytesView bytes) {
  if (stream == wasi::Stream::kStdout && !kept_.empty()) (void)flush();
  return write_now(fd(stream), bytes);
}

void Streams::keep(std::string_view text) {
  kept_ += text;
  if (kept_.size() > kKeptBytesMax) (void)flush();
}

Result<void> Streams::flush() {
  const std::string text = std::exchange(kept_, {});
  if (const int failed = write_now(files_.out, as_bytes(text)); failed != 0 && !lost_) {
    lost_ = failed;
  }
  if (lost_) return cannot_print(*lost_);
  return {};
}

void Streams::tell(std::string_view text) const { (void)write_now(files_.err, as_bytes(text)); }

void Streams::complain(std::string_view message) const {
  std::string text(message);
  std::ranges::replace_if(
      text, [](char c) { return is_control(c) && c != '\n'; }, '?');
  tell(fmt::format("sandbox-workers: {}\n", text));
}

Result<std::string_view> Streams::read_input(std::size_t bytes_max) {
  if (!input_) {
    SW_TRY(input_, read_to_end(files_.in, bytes_max));
  }
  return std::string_view(*input_);
}

std::string printable(std::string_view name) {
  std::string text(name);
  std::ranges::replace_if(text, is_control, '?');
  return text;
}

}  // namespace sw::cli
