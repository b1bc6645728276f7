// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "snapshot/compression.h"
#include "snapshot/key_pages.h"
#include "snapshot/page_table.h"
#include "snapshot/recent_pages.h"
#include "snapshot/snapshot_store.h"

namespace sw::snapshot {

struct LiveMemory::State {
  State(std::string context_name, std::string build_name, std::size_t recent_bytes_max)
      : context(std::move(context_name)),
        build(std::move(build_name)),
        recent(recent_bytes_max),
        key_pages(recent_bytes_max) {}

  std::string context;
  std::string build;
  std::uint32_t owner = 0;  ///< of the packs that it writes
  PackId based_on;          ///< the context's newest version when this was loaded or last saved
  std::uint64_t step = 0;   ///< of that version
  std::uint64_t key_interval = 1;
  std::shared_ptr<Compressions> compressions;  ///< shared with the store
  std::uint64_t memory_bytes = 0;
  PageTable table;
  RecentPages recent;
  std::uint32_t key_sequence = 0;  ///< Version::key_sequence
  KeyPages key_pages;
  std::uint64_t digest = 0;
  std::uint64_t stored_pages = 0;
  std::map<PackId, std::uint32_t> pages_in_pack;
  std::uint32_t family = 0;  ///< whose packs a restore has left pages in
  /// Stored pages that a restore left out and that were not asked for since: PageState::unread.
  std::map<PackId, std::uint32_t> unread_in_pack;
  std::uint64_t unread_pages = 0;
  std::uint64_t unread_digest = 0;  ///< what their shares of the version's digest add up to
  PackId host_tables_pack;          ///< where `host_tables` are stored
  Bytes host_tables;
};

/// The step is stored.
void remember(LiveMemory::State& live, EncodedStep::State step);

}  // namespace sw::snapshot
