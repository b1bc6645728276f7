// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A guest's memory as those see it who save and restore it: by pages, wherever it is. It may be in
// this process, or in a child that is read and written through the kernel.

#include <cstddef>
#include <cstdint>
#include <span>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"

namespace sw {

/// Unit of what is saved of a memory. Not Wasm's page, which is 64 KiB.
inline constexpr std::size_t kPageBytes = 4096;
using PageView = std::span<const std::byte, kPageBytes>;
using PageSpan = std::span<std::byte, kPageBytes>;

/// Where pages come from.
class PageSource {
 public:
  virtual ~PageSource() = default;
  virtual std::uint64_t memory_bytes() const = 0;  ///< a multiple of kPageBytes, at most 4 GiB
  /// A page below memory_bytes(). Valid as long as the source.
  virtual Result<PageView> read(std::uint32_t page) const = 0;
};

/// Where pages go to.
class PageSink {
 public:
  virtual ~PageSink() = default;
  virtual std::uint64_t memory_bytes() const = 0;  ///< as above
  /// Room for a page below memory_bytes(), to be written whole. Valid as long as the sink.
  virtual Result<PageSpan> write(std::uint32_t page) = 0;
};

/// The pages of a memory in this process, which outlives it. Its size is a multiple of kPageBytes.
class SpanPageSource final : public PageSource {
 public:
  explicit SpanPageSource(BytesView memory) : memory_(memory) {}
  std::uint64_t memory_bytes() const override { return memory_.size(); }
  Result<PageView> read(std::uint32_t page) const override {
    return memory_.subspan(page * kPageBytes).first<kPageBytes>();
  }

 private:
  const BytesView memory_;
};

class SpanPageSink final : public PageSink {
 public:
  explicit SpanPageSink(std::span<std::byte> memory) : memory_(memory) {}
  std::uint64_t memory_bytes() const override { return memory_.size(); }
  Result<PageSpan> write(std::uint32_t page) override {
    return memory_.subspan(page * kPageBytes).first<kPageBytes>();
  }

 private:
  const std::span<std::byte> memory_;
};

}  // namespace sw
