// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where a guest's standard streams lead.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/wasi/errno.h"

namespace sw::wasi {

enum class Stream : std::uint8_t { kStdout = 1, kStderr = 2 };

/// Called as the guest prints, on the guest's thread. The bytes are valid during the call.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  /// `bytes` is a piece of the output of any size: not a line, and perhaps not whole characters.
  /// Returns what the guest's write returns; kSuccess means that all of it was taken.
  virtual Errno write(Stream stream, BytesView bytes) = 0;
  /// A host descriptor that can be written when `write` would not block; -1 when it never blocks.
  virtual int poll_fd(Stream) const { return -1; }
};

class InputSource {
 public:
  virtual ~InputSource() = default;
  /// Bytes put into `to` (at least one, as they come), or 0 at the end. May block.
  virtual ErrnoOr<std::size_t> read(std::span<std::byte> to) = 0;
  /// A host descriptor that is readable when `read` would not block; -1 when it never blocks.
  virtual int poll_fd() const { return -1; }
  /// Bytes known to be ready, for the guest's poll.
  virtual std::uint64_t ready_bytes() const { return 1; }
};

/// Input that is known beforehand.
class BytesInput final : public InputSource {
 public:
  BytesInput() = default;
  explicit BytesInput(std::string bytes)
      : owner_(std::make_shared<const std::string>(std::move(bytes))), bytes_(*owner_) {}
  /// `bytes` outlives it.
  static BytesInput lent(std::string_view bytes) {
    BytesInput input;
    input.bytes_ = bytes;
    return input;
  }
  ErrnoOr<std::size_t> read(std::span<std::byte> to) override;
  std::uint64_t ready_bytes() const override { return bytes_.size() - position_; }

 private:
  std::shared_ptr<const std::string> owner_;  // so that what it owns stays in its place
  std::string_view bytes_;
  std::size_t position_ = 0;
};

/// Collects what is printed. For tests and small outputs.
class BufferSink final : public OutputSink {
 public:
  Errno write(Stream stream, BytesView bytes) override;
  std::string out;
  std::string err;
};

}  // namespace sw::wasi
