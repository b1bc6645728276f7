// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasi/streams.h"

namespace sw {

/// An input that is written during the run (Run::input): a program that reads more than has been
/// written waits.
/// Threads: `write` and `close` from any; the rest is the run's.
class InputStream final : public wasi::InputSource {
 public:
  /// The most that may be written and not yet read.
  static constexpr std::size_t kBytesMax = std::size_t{64} << 20;

  /// Errors: kUnavailable when the system has no descriptor left.
  static Result<std::shared_ptr<InputStream>> create();
  ~InputStream() override;

  /// Errors: kLimitExceeded when the program leaves too much unread; kInvalidArgument once closed.
  Result<void> write(std::string_view text);
  /// The program sees the end of its input after what was written.
  void close();

  wasi::ErrnoOr<std::size_t> read(std::span<std::byte> to) override;
  int poll_fd() const override;
  std::uint64_t ready_bytes() const override;

 private:
  struct State;
  explicit InputStream(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace sw
