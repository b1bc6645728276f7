// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which pages of a memory were written since somebody last asked? The kernel can protect pages
// against writing and take the protection away by itself when one is written (userfaultfd with
// UFFD_FEATURE_WP_ASYNC, Linux 6.7), so the pages without it are the answer. docs/adr/0029. Private
// to this room.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sandbox_workers/base/byte_range.h"
#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/base/unique_fd.h"
#include "wasm/dirty_pages.h"

namespace sw::wasm {

// Debian 12's kernel headers are older than these.
inline constexpr std::uint64_t kWriteProtectUnpopulated = 1 << 13;  // Linux 6.4
inline constexpr std::uint64_t kWriteProtectAsync = 1 << 15;        // Linux 6.7

/// Features that memory must be registered with for its writes to be tracked.
inline constexpr std::uint64_t kTrackedWrites = kWriteProtectAsync | kWriteProtectUnpopulated;

/// A userfaultfd; empty where the kernel or its policy does not offer it.
UniqueFd open_userfaults(std::uint64_t features);
/// False, with errno set, if it cannot be. `mode`: of UFFDIO_REGISTER.
bool register_memory(int faults, const void* begin, std::size_t bytes, std::uint64_t mode);

/// Threads: one at a time.
class WriteTracking {
 public:
  /// Of no memory, which also never gets one where the kernel does not offer it.
  WriteTracking() = default;
  static WriteTracking create() { return WriteTracking(open_userfaults(kTrackedWrites)); }

  /// Tracks memory that was just mapped.
  ///
  /// As a second effect a fault in it brings in its own page only. By default the kernel maps the
  /// sixteen pages of the file around it as well; those are clean, but each page that is present
  /// costs every scan for dirty pages some 15 ns, and an interpreter that touches 700 pages here and
  /// there would have 8,000 present. Memory registered for write protection is exempt from that,
  /// protected or not.
  void follow(const std::byte* begin, std::size_t bytes);

  /// Replaces `ranges` by the pages of `memory` that may have changed since the last call; the first
  /// time, and always where writes are not tracked, by those that may differ from `image`. May also
  /// name pages that were only read, and names pages again while that costs less than the faults that
  /// would tell. Nobody writes meanwhile.
  Result<void> take_changed(DirtyPageScanner& scanner, BytesView memory, BytesView image,
                            std::vector<ByteRange>& ranges);

  /// The next call is the first again. Errors: the memory must not be used any more.
  Result<void> start_over(BytesView memory);

 private:
  explicit WriteTracking(UniqueFd faults) : faults_(std::move(faults)) {}
  /// Notes what a scan named. Is it time to protect those pages?
  bool is_due(std::size_t pages);

  UniqueFd faults_;
  bool protected_ = false;  // some pages are, or have been
  bool lost_ = false;       // what is protected says nothing
  /// Pages that the first scan after the last protection named, which is about what a run writes.
  std::optional<std::size_t> pages_of_a_run_ = 0;
  std::size_t pages_named_ = 0;  // since then
};

}  // namespace sw::wasm
