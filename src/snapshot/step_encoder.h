// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes the packs of one step: finds the pages that really changed, writes each as the smallest
// difference, and the table nodes and the version that go with them. Changes nothing that is stored
// or remembered (but hashes); `remember` does, once the packs are committed.

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "sandbox_workers/base/result.h"
#include "snapshot/compression.h"
#include "snapshot/live_memory.h"
#include "snapshot/page_table.h"
#include "snapshot/snapshot_store.h"

namespace sw::snapshot {

/// A chain of differences to stored pages has at most this many links (staggered, up to twice as
/// many, so that the pages of a step do not all begin anew together), …
inline constexpr std::uint32_t kChainLengthMin = 8;
inline constexpr std::uint32_t kChainLengthMax = 2 * kChainLengthMin;
/// … and lies within so many sequence numbers. Both bound how many packs a restore reads.
inline constexpr std::uint32_t kChainSpanMax = 32;
/// Packs older than the span of chains that hold few pages of a memory: at kSparseOldPacksMax of
/// them, pages are written anew until kSparseOldPacksLeft remain, a few pages in each step.
inline constexpr std::size_t kSparseOldPacksMax = 24;
inline constexpr std::size_t kSparseOldPacksLeft = 12;
inline constexpr std::size_t kMovedPagesMax = 16;

struct PreparedStep {
  struct Change {
    std::uint32_t page = 0;
    BytesView content{};   ///< a page of the step's memory; empty if it is removed
    bool removed = false;  ///< as in the image again
    bool moved = false;    ///< not changed, but written again
    PageState state{};     ///< the new one
  };
  std::vector<std::pair<PackId, Bytes>> packs;
  std::vector<std::pair<PackId, std::size_t>> entry_counts;
  std::vector<Change> changes;  // by page
  std::map<std::uint32_t, PageTable::StoredRegion> regions;
  std::uint64_t digest = 0;
  std::uint64_t stored_pages = 0;
  PackId host_tables_pack;
  SaveStats stats;
};

/// `version_template` says what is not of this step: previous and history.
/// Errors: kInvalidArgument for sizes or ranges that cannot be; kLimitExceeded for host tables.
Result<PreparedStep> prepare_step(LiveMemory::State& live, const Step& step, PackId first,
                                  const Version& version_template, Compression& compression);
void remember(LiveMemory::State& live, PreparedStep step, const Step& input);

}  // namespace sw::snapshot
