// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file of our own, through the same layer as SQLite's: what loses or tears its writes in tests does
// so to both.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"

struct sqlite3_file;

namespace sw::storage {

/// Threads: one at a time.
/// Errors: kUnavailable, naming the file.
class VfsFile {
 public:
  /// Made if it is not there.
  static Result<std::unique_ptr<VfsFile>> open(const std::filesystem::path& path,
                                               const std::string& vfs);
  ~VfsFile();
  VfsFile(const VfsFile&) = delete;
  VfsFile& operator=(const VfsFile&) = delete;

  Result<std::uint64_t> size() const;
  Result<Bytes> read(std::uint64_t offset, std::size_t bytes) const;
  Result<void> write(std::uint64_t offset, BytesView bytes);
  Result<void> truncate(std::uint64_t size);
  /// Waits until its content is on disk; the first time also its name.
  Result<void> sync();

 private:
  explicit VfsFile(std::filesystem::path path) : path_(std::move(path)) {}
  Error failed(const char* what, int code) const;

  const std::filesystem::path path_;
  std::unique_ptr<std::byte[]> memory_;  // of the layer's file object
  sqlite3_file* file_ = nullptr;         // in memory_
};

}  // namespace sw::storage
