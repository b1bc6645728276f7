// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/pack_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "snapshot/catalog.h"

namespace sw::snapshot {

namespace {

std::size_t weight(const Pack& pack) { return sizeof pack + pack.differences.size(); }

Error missing(PackId id, std::string_view what) {
  return Error{ErrorCode::kCorrupt, fmt::format("snapshot pack {}: {}", to_string(id), what)};
}

}  // namespace

std::shared_ptr<const Pack> PackCache::find(PackId id) const {
  const auto found = packs_.find(id);
  return found == packs_.end() ? nullptr : found->second;
}

/// Large packs go first: they hold the bulk that was written once, and small ones are what chains
/// lead through.
void PackCache::put(const std::shared_ptr<const Pack>& pack) {
  while (!packs_.empty() && bytes_ + weight(*pack) > bytes_max_) {
    const auto largest = std::ranges::max_element(
        packs_, {}, [](const auto& item) { return item.second->differences.size(); });
    bytes_ -= weight(*largest->second);
    packs_.erase(largest);
  }
  bytes_ += weight(*pack);
  packs_.emplace(pack->id, pack);
}

Result<std::optional<Bytes>> PackReader::bytes(PackId id) {
  return reader_.get(table_, pack_key(family_, id));
}

Result<Pack> PackReader::directory(PackId id) {
  SW_TRY(const auto row, bytes(id));
  if (!row) return missing(id, "missing");
  ++packs_read_;
  return decode_pack(id, *row, PackPart::kDirectory, compression_);
}

Result<std::shared_ptr<const Pack>> PackReader::pack(PackId id) {
  if (auto found = kept().find(id)) return found;
  SW_TRY(const auto row, bytes(id));
  if (!row) return missing(id, "missing");
  ++packs_read_;
  SW_TRY(Pack read, decode_pack(id, *row, PackPart::kAll, compression_));
  auto shared = std::make_shared<const Pack>(std::move(read));
  kept().put(shared);
  return shared;
}

namespace {

/// Adds what a node itself says, and returns its base.
Result<PackRef> add_node(PackReader& packs, std::uint32_t region, PackRef ref,
                         RegionPlaces& places) {
  SW_TRY(const auto pack, packs.pack(ref.pack));
  SW_TRY(const Node* const node, find_node(*pack, ref.index));
  if (node->region != region)
    return missing(ref.pack, fmt::format("table node {} is not of region {}", ref.index, region));
  for (const PageRun& run : node->runs) {
    for (std::size_t i = 0; i < run.length; ++i) {
      RegionPlaces::Place& place = places.pages[run.page_in_region + i];
      if (place.entry.pack) continue;
      place = {{run.first.pack, static_cast<std::uint16_t>(run.first.index + i)}, run.plain};
    }
  }
  return node->base;
}

}  // namespace

Result<RegionPlaces> read_region(PackReader& packs, const RegionRef& region) {
  RegionPlaces places;
  SW_TRY(const PackRef base, add_node(packs, region.region, region.node, places));
  places.base = base.pack ? base : region.node;
  if (!base.pack) return places;
  SW_TRY(const PackRef none, add_node(packs, region.region, base, places));
  if (none.pack) return missing(base.pack, fmt::format("table node {} has a base", base.index));
  return places;
}

Result<const Entry*> find_entry(const Pack& pack, std::uint16_t index) {
  const auto found = std::ranges::lower_bound(pack.entries, index, {}, &Entry::index);
  if (found != pack.entries.end() && found->index == index) return &*found;
  return missing(pack.id, fmt::format("no entry {}", index));
}

Result<const Node*> find_node(const Pack& pack, std::uint16_t index) {
  const auto found = std::ranges::find(pack.nodes, index, &Node::index);
  if (found != pack.nodes.end()) return &*found;
  return missing(pack.id, fmt::format("no table node {}", index));
}

}  // namespace sw::snapshot
