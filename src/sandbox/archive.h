// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A sandbox as one stream of bytes: the rows of its object and of its Interpreters' objects, and a
// checksum of all of it. Format: docs/formats/archive.md.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>

#include "sandbox_workers/base/byte_stream.h"
#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/base/sha256.h"
#include "storage/storage.h"

namespace sw::sandbox {

/// What comes first: where the rest is from.
struct ArchiveAbout {
  std::string text;  ///< JSON
};
/// The rows that follow are of this object.
struct ArchiveObject {
  std::string binding;  ///< of an Interpreter; empty: the sandbox's own
  std::uint32_t schema = 0;
};
struct ArchiveRow {
  storage::TableId table = 0;
  std::string key;
  Bytes value;
};
/// All was read, and its checksum is right.
struct ArchiveEnd {};
using ArchiveRecord = std::variant<ArchiveEnd, ArchiveAbout, ArchiveObject, ArchiveRow>;

/// Threads: one at a time. Errors: those of `write`.
class ArchiveWriter {
 public:
  explicit ArchiveWriter(const WriteBytes& write);

  Result<void> about(std::string_view text);
  Result<void> object(std::string_view binding, std::uint32_t schema);
  Result<void> row(storage::TableId table, std::string_view key, BytesView value);
  Result<void> end();

 private:
  Result<void> add(BytesView bytes);
  Result<void> flush();

  const WriteBytes& write_;
  Bytes buffer_;
  Sha256 checksum_;
};

/// Takes what it reads for hostile. Threads: one at a time.
/// Errors: kInvalidArgument for what is no archive, or one of a later version; kCorrupt; those of
/// `read`.
class ArchiveReader {
 public:
  explicit ArchiveReader(const ReadBytes& read) : read_(read) {}

  Result<ArchiveRecord> next();

 private:
  Result<void> begin();
  Result<void> end();
  Result<Bytes> take(std::uint64_t bytes, std::uint64_t bytes_max);
  Result<std::string> take_text(std::uint64_t bytes, std::uint64_t bytes_max);
  Result<std::uint64_t> number(std::size_t bytes);
  Result<void> fill();

  const ReadBytes& read_;
  Bytes buffer_;
  std::size_t used_ = 0;  // of the buffer
  Sha256 checksum_;
  bool begun_ = false;
};

}  // namespace sw::sandbox
