// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

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
  PackId based_on;  ///< the context's newest version when this was loaded or last saved
  std::uint64_t memory_bytes = 0;
  PageTable table;
  RecentPages recent;
  std::uint32_t key_sequence = 0;  ///< Version::key_sequence
  KeyPages key_pages;
  std::uint64_t digest = 0;
  std::uint64_t stored_pages = 0;
  std::map<PackId, std::uint32_t> pages_in_pack;
  PackId host_tables_pack;  ///< where `host_tables` are stored
  Bytes host_tables;
};

}  // namespace sw::snapshot
