// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which pages of a private mapping differ from the file behind it? The kernel knows: a page that
// was written is anonymous, one that was only read still belongs to the file. Three ways to ask, by
// speed: the PAGEMAP_SCAN ioctl (Linux 6.7), reading /proc/self/pagemap, comparing the bytes. The
// first two may name a page that was written with the value it had; none ever misses a page that
// differs, swapped-out pages included.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sandbox_workers/base/byte_range.h"
#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"

namespace sw::wasm {

enum class DirtyMethod : std::uint8_t { kPagemapScan, kPagemapRead, kCompare };

/// Threads: one scanner per thread.
class DirtyPageScanner {
 public:
  virtual ~DirtyPageScanner() = default;
  /// Replaces `ranges` by the pages of `memory` that may differ from `image` (the file mapped at
  /// its start; beyond the image's end: from zero). Ascending, not touching one another.
  virtual Result<void> scan(BytesView memory, BytesView image, std::vector<ByteRange>& ranges) = 0;
  /// Protects all pages against writing that are there; the kernel takes that away again from a page
  /// that is written. Only kPagemapScan can.
  /// Errors: kUnavailable if it cannot, or if not all of the memory is tracked (WriteTracking). Some
  /// pages may be protected then.
  virtual Result<void> protect(BytesView /*memory*/) { return cannot_track(); }
  /// Replaces `ranges` by the pages that are there and not protected: written since they were, or not
  /// there then. Takes a twentieth of the time of `scan`. Errors: as `protect`.
  virtual Result<void> scan_written(BytesView /*memory*/, std::vector<ByteRange>& /*ranges*/) {
    return cannot_track();
  }
  virtual DirtyMethod method() const = 0;

  /// The fastest one this kernel offers.
  static std::unique_ptr<DirtyPageScanner> create();
  /// Errors: kUnavailable when the kernel does not offer `method`.
  static Result<std::unique_ptr<DirtyPageScanner>> create(DirtyMethod method);

 private:
  static Error cannot_track() {
    return Error{ErrorCode::kUnavailable, "this scan does not track writes", 0};
  }
};

}  // namespace sw::wasm
