// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sandbox_workers/base/byte_range.h"
#include "sandbox_workers/base/pages.h"
#include "sandbox_workers/base/result.h"
#include "snapshot/live_memory.h"
#include "snapshot/pack_reader.h"

namespace sw::snapshot {

/// A region with so many stored pages may be left out, if all of these together have …
inline constexpr std::uint32_t kLateRegionPagesMin = 64;
/// … so many. With fewer, writing them all takes less time than asking for some.
inline constexpr std::size_t kLatePagesMin = 512;
inline constexpr std::size_t kLatePartsMax = 64;
/// Pages that are written before they are asked for, of those that were left out: the ones of the
/// newest packs, which the last runs wrote.
inline constexpr std::size_t kReadAheadPagesMax = 128;

/// Writes a version's pages over a memory that is as the image has it, each one checked before it
/// is written, and fills in what is stored of it.
class Restorer {
 public:
  Restorer(PackReader& packs, BytesView image, PageSink& memory, LiveMemory::State& live)
      : packs_(packs), image_(image), memory_(memory), live_(live) {}

  /// Errors: kCorrupt naming the page or pack.
  Result<void> restore(const Version& version, std::uint32_t newest_sequence,
                       const LeaveOut& leave_out);
  /// Writes a page of a part that was left out, and others that cost little more: those of its pack that
  /// are differences to no stored page, or the next ones that are not stored. At most
  /// kPackEntriesMax.
  Result<void> load(std::uint32_t page);
  std::uint64_t pages_written() const { return pages_written_; }

 private:
  Result<void> read_node(const RegionRef& region);
  std::vector<ByteRange> large_parts() const;
  Result<void> restore_all_but(const std::vector<ByteRange>& parts);
  Result<void> restore_page(std::uint32_t page);
  Result<void> load_unstored(std::uint32_t page);
  Result<void> load_with_its_pack(std::uint32_t page);
  void account(PageState& state, const PageState& read, std::uint32_t page);
  Result<void> build_page(std::uint32_t page, PageState& state, Page& content);
  Result<Against> apply(std::uint32_t page, const Pack& pack, const Entry& entry, Page& content);
  Result<void> read_ahead();
  Result<void> keep_recent_pages(std::uint32_t newest_sequence);

  PackReader& packs_;
  BytesView image_;
  PageSink& memory_;
  LiveMemory::State& live_;
  std::shared_ptr<const Pack> pack_;  // of the page before: the next one's mostly too
  std::uint64_t pages_written_ = 0;
};

}  // namespace sw::snapshot
