// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whole-file helpers over the host's file system.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/base/result.h"

namespace sw {

using Bytes = std::vector<std::byte>;
using BytesView = std::span<const std::byte>;

inline BytesView as_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }
inline std::string_view as_text(BytesView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The file's whole content. Errors: kInvalidArgument when it is larger than `bytes_max`, found out
/// without reading more than that: not every file has an end.
Result<Bytes> read_file(const std::filesystem::path& path, std::size_t bytes_max = SIZE_MAX);
Result<std::string> read_text_file(const std::filesystem::path& path,
                                   std::size_t bytes_max = SIZE_MAX);

/// Replaces the file: written beside it, synced, renamed, folder synced. A reader sees the old
/// content or the new, never a part.
Result<void> write_file_atomically(const std::filesystem::path& path, BytesView content);

/// Creates the folder (and its parents) with mode 0700 if it is missing. An existing folder that
/// others can write to is refused: what lies in it is executed.
Result<void> make_private_directory(const std::filesystem::path& path);

/// A folder that is deleted with its content when the object dies. For tests and bakes.
class TemporaryDirectory {
 public:
  static Result<TemporaryDirectory> create(const std::filesystem::path& parent,
                                           std::string_view prefix);
  TemporaryDirectory(TemporaryDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryDirectory& operator=(TemporaryDirectory&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ~TemporaryDirectory();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace sw
