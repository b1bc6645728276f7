// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "base/standard_streams.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace sw {

void occupy_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest free number, which is this one.
    [[maybe_unused]] const int opened =
        ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int write_all(int fd, BytesView bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(put));
    } else if (errno == EAGAIN) {
      // Whoever shares the pipe with us has made it non-blocking.
      pollfd wait{.fd = fd, .events = POLLOUT, .revents = 0};
      (void)::poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

Error cannot_print(int errno_value) {
  Error error = errno_error(errno_value, "cannot write to standard output");
  error.code = ErrorCode::kUnavailable;  // nothing is wrong with what was asked for
  return error;
}

Result<void> flush_stdout() {
  // Of a write that failed earlier stdio keeps only that it failed.
  const bool lost = std::ferror(stdout) != 0;
  if (std::fflush(stdout) != 0) return cannot_print(errno);
  if (!lost) return {};
  return Error{ErrorCode::kUnavailable, "cannot write to standard output", 0};
}

void tell(std::string_view text) { (void)write_all(STDERR_FILENO, as_bytes(text)); }

Result<std::string> read_to_end(int fd, std::size_t bytes_max) {
  std::string text;
  std::string block(std::size_t{1} << 16, '\0');
  for (;;) {
    const ssize_t got = ::read(fd, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(errno, "cannot read standard input");
    if (got == 0) return text;
    text.append(block, 0, static_cast<std::size_t>(got));
    if (text.size() > bytes_max) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("standard input is too large: the limit is {} bytes", bytes_max), 0};
    }
  }
}

}  // namespace sw
