// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The open files of one guest. All of it is data, so it can be written out and read back: open
// files survive a snapshot of the guest's memory.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasi/file_system.h"
#include "sandbox_workers/wasi/wasi.h"
#include "wasi/rights.h"

namespace sw::wasi {

/// An open file: what POSIX calls an open file description. Several descriptors may share one.
struct OpenFile {
  NodeRef at;  ///< null for standard streams
  Device device = Device::kNone;
  std::uint64_t position = 0;
  std::uint16_t flags = 0;
  Rights base = 0;
  Rights inheriting = 0;
  std::string preopen;  ///< the name a preopened directory is known by; empty for others
  /// Restored, but its file is gone: everything but closing fails with ESTALE
  bool stale = false;

  bool is_stream() const { return !at.node; }
  FileType type() const { return is_stream() ? FileType::kCharacterDevice : at.node->type; }
  Place place() const { return {at.mount, at.node.get()}; }
};

/// Threads: one at a time.
class DescriptorTable {
 public:
  explicit DescriptorTable(std::size_t open_max) : open_max_(open_max) {}

  void set_open_max(std::size_t open_max) { open_max_ = open_max; }
  /// Descriptors 0 to 2 and, from 3, the preopens, in order. Anything open before is closed.
  Errno open_standard(FileSystem& files, const std::vector<Preopen>& preopens);
  void close_all();
  /// From now on the first `count` preopens stay open: to the guest their numbers look closed where
  /// it would close or replace them.
  void keep_preopens(std::size_t count) { kept_preopens_ = count; }
  /// Opens those of the descriptors 0 to 2 that are closed.
  void reopen_streams();

  /// The open file or kBadf.
  ErrnoOr<std::shared_ptr<OpenFile>> get(std::uint32_t descriptor) const;
  OpenFile* find(std::uint32_t descriptor) const;
  /// The lowest free number; kMfile when all are in use.
  ErrnoOr<std::uint32_t> insert(std::shared_ptr<OpenFile> file);
  bool full() const { return open_count_ >= open_max_; }
  Errno close(std::uint32_t descriptor);
  /// `to` must be open; it is closed and takes over what `from` was.
  Errno renumber(std::uint32_t from, std::uint32_t to);
  /// A second descriptor for the same open file.
  ErrnoOr<std::uint32_t> duplicate(std::uint32_t descriptor);

  std::size_t open_count() const { return open_count_; }

  /// Format: docs/formats/descriptors.md. A file without a name is written with its content.
  Result<Bytes> serialize(FileSystem& files) const;
  /// Replaces this table. Files are found by path; one that is gone, or is no longer of the same
  /// type, is opened stale. `blob` may come from anywhere.
  /// Errors: kCorrupt; kLimitExceeded past the table's or a tree's limits. This table is then
  /// unchanged.
  Result<void> deserialize(BytesView blob, FileSystem& files);

 private:
  bool is_kept(std::uint32_t descriptor) const;

  std::size_t open_max_;
  std::size_t kept_preopens_ = 0;
  std::size_t open_count_ = 0;
  std::vector<std::shared_ptr<OpenFile>> slots_;  // by number; null when closed
};

}  // namespace sw::wasi
