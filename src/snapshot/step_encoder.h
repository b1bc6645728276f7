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
#include "snapshot/base_chooser.h"
#include "snapshot/compression.h"
#include "snapshot/history.h"
#include "snapshot/live_memory.h"
#include "snapshot/page_table.h"
#include "snapshot/snapshot_store.h"

namespace sw::snapshot {

/// Packs older than the span of chains that hold few pages of a memory: at kSparseOldPacksMax of
/// them, pages are written anew until kSparseOldPacksLeft remain, some pages in each key step.
inline constexpr std::size_t kSparseOldPacksMax = 24;
inline constexpr std::uint32_t kSparsePagesMax = 31;
inline constexpr std::size_t kSparseOldPacksLeft = 12;
inline constexpr std::size_t kMovedPagesMax = 64;
/// A step with more pages than a pack may hold writes packs of so many, and the table into one of
/// its own: who restores it reads that, and then little for each page that is asked for.
inline constexpr std::size_t kLargeStepPackEntries = 64;

struct EncodedStep::State {
  struct Change {
    std::uint32_t page = 0;
    BytesView content{};   ///< a page of the step's memory; empty if it is removed
    bool removed = false;  ///< as in the image again
    bool moved = false;    ///< not changed, but written again, so that its pack can go
    PageState state{};     ///< the new one
  };
  std::vector<std::pair<PackId, Bytes>> packs;
  std::vector<std::pair<PackId, std::size_t>> entry_counts;
  std::vector<Change> changes;  // by page
  std::map<std::uint32_t, PageTable::StoredRegion> regions;
  std::uint64_t digest = 0;
  std::uint64_t stored_pages = 0;
  PackId host_tables_pack;
  Bytes host_tables;
  std::uint32_t key_sequence = 0;
  std::uint64_t memory_bytes = 0;
  KeptVersion version;
  std::string about;
  SaveStats stats;
};

/// A key step writes all pages that steps since the last one wrote.
/// Errors: kInvalidArgument for sizes or ranges that cannot be; kLimitExceeded for host tables.
Result<EncodedStep::State> encode_step(LiveMemory::State& live, const Step& step,
                                       Compression& compression);

}  // namespace sw::snapshot
