// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sandbox_workers/base/pages.h"
#include "sandbox_workers/base/result.h"
#include "snapshot/live_memory.h"
#include "snapshot/pack_reader.h"

namespace sw::snapshot {

/// Writes a version's pages over a memory that is as the image has it, each one checked before it
/// is written, and fills in what is stored of it.
class Restorer {
 public:
  Restorer(PackReader& packs, BytesView image, PageSink& memory, LiveMemory::State& live)
      : packs_(packs), image_(image), memory_(memory), live_(live) {}

  /// Errors: kCorrupt naming the page or pack.
  Result<void> restore(const Version& version, std::uint32_t newest_sequence);
  std::uint64_t pages_written() const { return pages_written_; }

 private:
  Result<void> restore_region(const RegionRef& region);
  Result<void> restore_page(std::uint32_t page, PackRef place, bool plain);
  Result<void> build_page(std::uint32_t page, PageState& state, Page& content);
  Result<Against> apply(std::uint32_t page, const Pack& pack, const Entry& entry, Page& content);
  Result<void> keep_recent_pages(std::uint32_t newest_sequence);

  PackReader& packs_;
  BytesView image_;
  PageSink& memory_;
  LiveMemory::State& live_;
  std::shared_ptr<const Pack> pack_;  // of the page before: the next one's mostly too
  std::uint64_t pages_written_ = 0;
};

}  // namespace sw::snapshot
