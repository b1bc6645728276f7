// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "base/thread_safety.h"
#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace sw::snapshot {

/// zstd with its working memory kept between calls. One thread at a time.
class Compression {
 public:
  Compression();
  ~Compression();
  Compression(const Compression&) = delete;
  Compression& operator=(const Compression&) = delete;

  Result<Bytes> compress(BytesView bytes);
  /// Errors: kCorrupt unless the result is exactly `size` bytes, which the caller has checked
  /// against a limit.
  Result<Bytes> decompress(BytesView compressed, std::size_t size);

 private:
  struct FreeCompressor {
    void operator()(ZSTD_CCtx_s* context) const noexcept;
  };
  struct FreeDecompressor {
    void operator()(ZSTD_DCtx_s* context) const noexcept;
  };
  std::unique_ptr<ZSTD_CCtx_s, FreeCompressor> compressor_;
  std::unique_ptr<ZSTD_DCtx_s, FreeDecompressor> decompressor_;
  Bytes scratch_;
};

/// Some that are used again: making one takes longer than a small step.
/// Threads: any.
class Compressions {
 public:
  std::unique_ptr<Compression> take();
  void give_back(std::unique_ptr<Compression> idle);

 private:
  Mutex mutex_;
  std::vector<std::unique_ptr<Compression>> idle_ SW_GUARDED_BY(mutex_);
};

}  // namespace sw::snapshot
