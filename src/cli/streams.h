// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The standard streams of whoever asked for a command. What cannot be printed is a failure of the
// command; what cannot be said on stderr is not, because there is nobody left to tell.

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasi/streams.h"

namespace sw::cli {

/// Threads: one at a time, but for what is const.
class Streams {
 public:
  /// Descriptors that outlive the streams.
  struct Files {
    int in = STDIN_FILENO;
    int out = STDOUT_FILENO;
    int err = STDERR_FILENO;
    /// Readable once nobody waits for the command any more: whatever blocks ends then. -1: such a
    /// process ends as a whole.
    int gone = -1;
  };

  explicit Streams(Files files) : files_(files) {}
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  int fd(wasi::Stream stream) const {
    return stream == wasi::Stream::kStdout ? files_.out : files_.err;
  }
  /// Writes all of it, after what was printed before. Returns 0, or the errno of the write that
  /// failed.
  int write(wasi::Stream stream, BytesView bytes);

  /// To stdout, at the next `flush` or earlier.
  template <class... T>
  void print(fmt::format_string<T...> format, T&&... arguments) {
    keep(fmt::format(format, std::forward<T>(arguments)...));
  }
  /// Fails if anything printed since the start got lost.
  Result<void> flush();
  /// Says something of our own on stderr. Control characters other than line feeds become '?'.
  void complain(std::string_view message) const;
  /// The same, as it is.
  void tell(std::string_view text) const;

  /// All there is on stdin. What is returned lives as long as the streams; a second call returns it
  /// again.
  Result<std::string_view> read_input(std::size_t bytes_max);

  /// Until `fd` can be read or written, or nobody waits any more. Returns 0, or ECANCELED.
  int wait(int fd, short events) const;

 private:
  void keep(std::string_view text);
  int write_now(int fd, BytesView bytes) const;

  const Files files_;
  std::string kept_;         // printed, and not written yet
  std::optional<int> lost_;  // the first errno of what was printed
  std::optional<std::string> input_;
};

/// The most that a command reads of stdin. It is kept in memory.
inline constexpr std::size_t kInputBytesMax = std::size_t{1} << 30;

/// A name that a guest may have chosen, for a line of ours: control characters become '?'.
std::string printable(std::string_view name);

}  // namespace sw::cli
