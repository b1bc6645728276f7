// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/pages.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/base/unique_fd.h"

namespace sw::wasm {

/// Wasm's page size: memories are a multiple of it.
inline constexpr std::size_t kWasmPageBytes = 65536;

/// A memory image: the content of a linear memory at rest, in a file that slots map privately.
/// Immutable and thread-safe; the file may be deleted while mapped.
class Image {
 public:
  /// Writes `memory` to a sparse file (pages of zeros become holes) and syncs it. Not atomic: write
  /// to a temporary name.
  static Result<void> write(const std::filesystem::path& path, BytesView memory);

  static Result<std::shared_ptr<const Image>> open(const std::filesystem::path& path);
  ~Image();
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  std::size_t size() const { return bytes_.size(); }
  /// The image's content, mapped read-only.
  BytesView bytes() const { return bytes_; }
  int fd() const { return fd_.get(); }

 private:
  Image(UniqueFd fd, BytesView bytes) : fd_(std::move(fd)), bytes_(bytes) {}
  UniqueFd fd_;
  BytesView bytes_;
};

}  // namespace sw::wasm
