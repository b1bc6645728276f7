// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which packs a store needs, found without its collector: for tests.

#include <cstdint>
#include <map>
#include <set>

#include "snapshot/catalog.h"
#include "snapshot/history.h"
#include "snapshot/pack_reader.h"
#include "snapshot/test_guest.h"
#include "storage/storage.h"

namespace sw::snapshot {

/// All packs that are stored, and those that a kept version needs.
struct Packs {
  std::set<PackId> stored;
  std::set<PackId> needed;
};

class PackFinder {
 public:
  Packs find(storage::ObjectStorage& object, std::set<VersionId> roots) {
    must(object.read([&](storage::Reader& reader) {
      return reader.scan({.table = Options().packs_table, .from = {}, .to = {}},
                         storage::Order::kAscending,
                         [&](std::string_view key, BytesView row) -> Result<storage::Scan> {
                           if (const auto id = pack_of_key(key)) add(*id, row);
                           else roots.insert(must(decode_version_row(key, row)).first.id);
                           return storage::Scan::kContinue;
                         });
    }));
    for (const VersionId root : roots) need_version(root);
    return found_;
  }

 private:
  void add(PackId id, BytesView row) {
    found_.stored.insert(id);
    packs_.emplace(id, must(decode_pack(id, row, PackPart::kDirectory, compression_)));
  }
  const Pack& need(PackId id) {
    found_.needed.insert(id);
    return packs_.at(id);
  }
  void need_version(VersionId id) {
    const Version& version = *need(id).version;
    need(version.host_tables);
    for (const RegionRef& region : version.regions) need_node(region.node);
  }
  void need_node(PackRef ref) {
    if (!seen_nodes_.insert(ref).second) return;
    const Node& node = **find_node(need(ref.pack), ref.index);
    if (node.base.pack) need_node(node.base);
    for (const PageRun& run : node.runs) {
      for (std::uint16_t i = 0; i < run.length; ++i)
        need_entry({run.first.pack, static_cast<std::uint16_t>(run.first.index + i)});
    }
  }
  void need_entry(PackRef ref) {
    while (seen_entries_.insert(ref).second) {
      const Entry& entry = **find_entry(need(ref.pack), ref.index);
      if (entry.against != Against::kStored) return;
      ref = entry.base;
    }
  }

  Compression compression_;
  std::map<PackId, Pack> packs_;
  std::set<PackRef> seen_nodes_;
  std::set<PackRef> seen_entries_;
  Packs found_;
};

}  // namespace sw::snapshot
