// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasm/dirty_pages.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "sandbox_workers/base/unique_fd.h"
#include "sandbox_workers/wasm/image.h"

namespace sw::wasm {

namespace {

// Debian 12's kernel headers are older than PAGEMAP_SCAN; these are the ABI of linux/fs.h since
// 6.7.
struct ScanRegion {
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t categories;
};
struct ScanArgument {
  std::uint64_t size;
  std::uint64_t flags;
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t walk_end;
  std::uint64_t vec;
  std::uint64_t vec_len;
  std::uint64_t max_pages;
  std::uint64_t category_inverted;
  std::uint64_t category_mask;
  std::uint64_t category_anyof_mask;
  std::uint64_t return_mask;
};
constexpr unsigned long kPagemapScan = _IOWR('f', 16, ScanArgument);
constexpr std::uint64_t kProtectMatching = 1 << 0;
constexpr std::uint64_t kFailIfNotTracked = 1 << 1;
constexpr std::uint64_t kPageIsWritten = 1 << 1;
constexpr std::uint64_t kPageIsFile = 1 << 2;
constexpr std::uint64_t kPageIsPresent = 1 << 3;
constexpr std::uint64_t kPageIsSwapped = 1 << 4;

Result<UniqueFd> open_pagemap() {
  UniqueFd fd(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error(errno, "cannot open /proc/self/pagemap");
  return fd;
}

/// Adds [begin, end), joining it to the range before if they touch.
void append(std::vector<ByteRange>& ranges, std::size_t begin, std::size_t end) {
  if (!ranges.empty() && ranges.back().end == begin) ranges.back().end = end;
  else ranges.push_back({begin, end});
}

class PagemapScan final : public DirtyPageScanner {
 public:
  explicit PagemapScan(UniqueFd pagemap) : pagemap_(std::move(pagemap)) {}

  Result<void> scan(BytesView memory, BytesView /*image*/,
                    std::vector<ByteRange>& ranges) override {
    ScanArgument query = {};
    query.category_inverted = kPageIsFile;
    query.category_mask = kPageIsFile;
    return walk(memory, query, ranges);
  }
  Result<void> protect(BytesView memory) override {
    return walk_tracked(memory, kProtectMatching, named_);
  }
  Result<void> scan_written(BytesView memory, std::vector<ByteRange>& ranges) override {
    return walk_tracked(memory, 0, ranges);
  }
  DirtyMethod method() const override { return DirtyMethod::kPagemapScan; }

 private:
  /// Not whether pages are of the file: to learn that the kernel looks at each page's own record,
  /// which is in no cache (140 ns instead of 7).
  Result<void> walk_tracked(BytesView memory, std::uint64_t flags, std::vector<ByteRange>& ranges) {
    ScanArgument query = {};
    // Without that flag the kernel passes over memory that is not tracked.
    query.flags = kFailIfNotTracked | flags;
    query.category_mask = kPageIsWritten;
    Result<void> walked = walk(memory, query, ranges);
    if (walked.ok()) return walked;
    return Error{ErrorCode::kUnavailable, std::move(walked).error().message, 0};
  }

  Result<void> walk(BytesView memory, ScanArgument argument, std::vector<ByteRange>& ranges) {
    ranges.clear();
    const auto base = reinterpret_cast<std::uint64_t>(memory.data());
    argument.size = sizeof argument;
    argument.end = base + memory.size();
    // In memory or in swap: a page that was only swapped out is as dirty as before. What is nowhere
    // would count as written.
    argument.category_anyof_mask = kPageIsPresent | kPageIsSwapped;
    argument.return_mask = kPageIsPresent;
    argument.vec = reinterpret_cast<std::uint64_t>(regions_.data());
    argument.vec_len = regions_.size();
    for (argument.start = base; argument.start < argument.end;) {
      const int count = ::ioctl(pagemap_.get(), kPagemapScan, &argument);
      if (count < 0) return errno_error(errno, "PAGEMAP_SCAN");
      for (int i = 0; i < count; ++i) {
        const ScanRegion& region = regions_[static_cast<std::size_t>(i)];
        append(ranges, region.start - base, region.end - base);
      }
      // Not walk_end: after a full vector the kernel reports the start of the page-table range it
      // was in, and going on there would return regions a second time.
      if (static_cast<std::size_t>(count) < regions_.size()) break;
      argument.start = regions_.back().end;
    }
    return {};
  }

  UniqueFd pagemap_;
  std::array<ScanRegion, 1024> regions_ = {};
  std::vector<ByteRange> named_;  // by `protect`, for nobody
};

class PagemapRead final : public DirtyPageScanner {
 public:
  explicit PagemapRead(UniqueFd pagemap) : pagemap_(std::move(pagemap)) {}

  Result<void> scan(BytesView memory, BytesView /*image*/,
                    std::vector<ByteRange>& ranges) override {
    // Bits of Documentation/admin-guide/mm/pagemap.rst.
    constexpr std::uint64_t kOfFile = std::uint64_t{1} << 61;
    constexpr std::uint64_t kSwapped = std::uint64_t{1} << 62;
    constexpr std::uint64_t kPresent = std::uint64_t{1} << 63;
    ranges.clear();
    const std::size_t pages = memory.size() / kPageBytes;
    const std::size_t first = reinterpret_cast<std::uintptr_t>(memory.data()) / kPageBytes;
    for (std::size_t page = 0; page < pages;) {
      const std::size_t wanted = std::min(entries_.size(), pages - page) * sizeof(std::uint64_t);
      const ssize_t got = ::pread(pagemap_.get(), entries_.data(), wanted,
                                  static_cast<off_t>((first + page) * sizeof(std::uint64_t)));
      if (got <= 0) return errno_error(got == 0 ? EIO : errno, "reading /proc/self/pagemap");
      const std::size_t count = static_cast<std::size_t>(got) / sizeof(std::uint64_t);
      for (std::size_t i = 0; i < count; ++i, ++page) {
        const bool dirty =
            (entries_[i] & kOfFile) == 0 && (entries_[i] & (kPresent | kSwapped)) != 0;
        if (dirty) append(ranges, page * kPageBytes, (page + 1) * kPageBytes);
      }
    }
    return {};
  }
  DirtyMethod method() const override { return DirtyMethod::kPagemapRead; }

 private:
  UniqueFd pagemap_;
  std::array<std::uint64_t, 8192> entries_ = {};
};

class Compare final : public DirtyPageScanner {
 public:
  Result<void> scan(BytesView memory, BytesView image, std::vector<ByteRange>& ranges) override {
    static constexpr std::array<std::byte, kPageBytes> kZeroPage = {};
    ranges.clear();
    for (std::size_t at = 0; at < memory.size(); at += kPageBytes) {
      const std::byte* expected = at < image.size() ? image.data() + at : kZeroPage.data();
      if (std::memcmp(memory.data() + at, expected, kPageBytes) != 0)
        append(ranges, at, at + kPageBytes);
    }
    return {};
  }
  DirtyMethod method() const override { return DirtyMethod::kCompare; }
};

/// Asks about one page, to learn whether this kernel knows the request at all.
bool works(DirtyPageScanner& scanner) {
  alignas(kPageBytes) static const std::array<std::byte, kPageBytes> kProbe = {};
  std::vector<ByteRange> ranges;
  return scanner.scan(kProbe, kProbe, ranges).ok();
}

}  // namespace

Result<std::unique_ptr<DirtyPageScanner>> DirtyPageScanner::create(DirtyMethod method) {
  std::unique_ptr<DirtyPageScanner> scanner;
  if (method == DirtyMethod::kCompare) {
    scanner = std::make_unique<Compare>();
  } else {
    SW_TRY(UniqueFd pagemap, open_pagemap());
    if (method == DirtyMethod::kPagemapScan)
      scanner = std::make_unique<PagemapScan>(std::move(pagemap));
    else scanner = std::make_unique<PagemapRead>(std::move(pagemap));
  }
  if (!works(*scanner))
    return Error{ErrorCode::kUnavailable, "this kernel does not support the requested scan", 0};
  return scanner;
}

std::unique_ptr<DirtyPageScanner> DirtyPageScanner::create() {
  for (const DirtyMethod method : {DirtyMethod::kPagemapScan, DirtyMethod::kPagemapRead}) {
    if (auto scanner = create(method); scanner.ok()) return *std::move(scanner);
  }
  return std::make_unique<Compare>();
}

}  // namespace sw::wasm
