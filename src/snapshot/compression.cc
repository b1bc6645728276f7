// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/compression.h"

#include <fmt/format.h>
#include <zstd.h>

#include <new>

namespace sw::snapshot {

namespace {
// What is compressed is mostly short and already sparse: higher levels cost time and save a percent
// or two.
constexpr int kLevel = 1;
}  // namespace

void Compression::FreeCompressor::operator()(ZSTD_CCtx_s* context) const noexcept {
  ZSTD_freeCCtx(context);
}
void Compression::FreeDecompressor::operator()(ZSTD_DCtx_s* context) const noexcept {
  ZSTD_freeDCtx(context);
}

Compression::Compression() : compressor_(ZSTD_createCCtx()), decompressor_(ZSTD_createDCtx()) {
  if (!compressor_ || !decompressor_) throw std::bad_alloc();
  ZSTD_CCtx_setParameter(compressor_.get(), ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(compressor_.get(), ZSTD_c_contentSizeFlag, 0);  // a pack says it itself
}
Compression::~Compression() = default;

Result<Bytes> Compression::compress(BytesView bytes) {
  scratch_.resize(ZSTD_compressBound(bytes.size()));
  const std::size_t size = ZSTD_compress2(compressor_.get(), scratch_.data(), scratch_.size(),
                                          bytes.data(), bytes.size());
  if (ZSTD_isError(size) != 0) {
    return Error{ErrorCode::kInternal, fmt::format("zstd: {}", ZSTD_getErrorName(size))};
  }
  return Bytes(scratch_.begin(), scratch_.begin() + static_cast<std::ptrdiff_t>(size));
}

Result<Bytes> Compression::decompress(BytesView compressed, std::size_t size) {
  Bytes out(size);
  const std::size_t got = ZSTD_decompressDCtx(decompressor_.get(), out.data(), out.size(),
                                              compressed.data(), compressed.size());
  if (ZSTD_isError(got) != 0)
    return Error{ErrorCode::kCorrupt, fmt::format("zstd: {}", ZSTD_getErrorName(got))};
  if (got != size) return Error{ErrorCode::kCorrupt, "zstd: size differs from the announced one"};
  return out;
}

std::unique_ptr<Compression> Compressions::take() {
  {
    const MutexLock lock(mutex_);
    if (!idle_.empty()) {
      auto taken = std::move(idle_.back());
      idle_.pop_back();
      return taken;
    }
  }
  return std::make_unique<Compression>();
}

void Compressions::give_back(std::unique_ptr<Compression> idle) {
  const MutexLock lock(mutex_);
  idle_.push_back(std::move(idle));
}

}  // namespace sw::snapshot
