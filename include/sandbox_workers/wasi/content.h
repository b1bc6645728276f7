// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a regular file holds. Bytes start out borrowed (a mapped archive, a folder loaded from the
// host, an archive member inflated on first use) and are copied only when the guest writes: many
// instances read one copy, and comparing with what was loaded is a comparison of pointers. Our own
// bytes can be lent in the same
// way: a write copies them while somebody holds on to them.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasi/errno.h"

namespace sw::wasi {

/// Read-only bytes and what keeps them alive (shared by all who read them).
struct SharedBytes {
  std::shared_ptr<const void> owner;
  BytesView bytes;

  static SharedBytes own(Bytes bytes);
};

/// Maps a host file read-only. The file must not be truncated while mapped.
Result<SharedBytes> map_file(const std::filesystem::path& path);

/// Bytes made on first use, once for all threads. The size is known beforehand.
class LazyBytes {
 public:
  LazyBytes(std::uint64_t size, std::function<Result<Bytes>()> make)
      : size_(size), make_(std::move(make)) {}
  std::uint64_t size() const { return size_; }
  /// kIo when they could not be made or have another size.
  ErrnoOr<BytesView> get();

 private:
  std::uint64_t size_;
  std::function<Result<Bytes>()> make_;
  std::once_flag once_;
  bool good_ = false;
  Bytes bytes_;
};

class FileContent {
 public:
  std::uint64_t size() const {
    return lazy_ ? lazy_->size() : own_ ? own_->size() : borrowed_.bytes.size();
  }
  /// Valid until the next change.
  ErrnoOr<BytesView> view() const;
  /// Bytes copied to `to`; 0 at the end or past it.
  ErrnoOr<std::size_t> read(std::uint64_t offset, std::span<std::byte> to) const;
  /// Grows as needed; a gap reads as zeros. kNomem when the host has no memory left: then nothing
  /// has changed.
  Errno write(std::uint64_t offset, BytesView bytes);
  Errno resize(std::uint64_t size);
  /// Makes room for `size` bytes, so that they are not moved when they come.
  Errno reserve(std::uint64_t size);

  void borrow(SharedBytes bytes);
  void borrow(std::shared_ptr<LazyBytes> lazy);
  void adopt(std::shared_ptr<Bytes> bytes);
  /// Do we still hold these very bytes, unchanged?
  bool borrows(BytesView bytes) const;
  /// The bytes, which stay as they are now for as long as they are held. Copies nothing.
  ErrnoOr<SharedBytes> share() const;
  /// Another number whenever the bytes may be other bytes than before: what was computed from them
  /// is then stale.
  std::uint64_t version() const { return version_; }

 private:
  Errno make_own(std::uint64_t keep);

  // One of the three at most; none: no bytes.
  std::shared_ptr<Bytes> own_;  // written to in place while nobody else holds it
  SharedBytes borrowed_;
  std::shared_ptr<LazyBytes> lazy_;
  std::uint64_t version_ = 0;
};

}  // namespace sw::wasi
