// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads and checks packs, and keeps some of what it read. Good within one transaction.

#include <array>
#include <cstdint>
#include <map>
#include <memory>

#include "sandbox_workers/base/result.h"
#include "snapshot/compression.h"
#include "snapshot/pack.h"
#include "storage/storage.h"

namespace sw::snapshot {

class PackReader {
 public:
  PackReader(storage::Reader& reader, storage::TableId table, std::uint32_t family,
             Compression& compression)
      : reader_(reader), table_(table), family_(family), compression_(compression) {}

  /// Shared with the reader, which may drop its own share at the next call.
  /// Errors: kCorrupt if it is damaged or missing.
  Result<std::shared_ptr<const Pack>> pack(PackId id);
  Result<Pack> directory(PackId id);
  /// Null if there is no such pack.
  Result<std::optional<Bytes>> bytes(PackId id);

  std::uint64_t packs_read() const { return packs_read_; }

 private:
  void make_room(std::size_t bytes);

  storage::Reader& reader_;
  storage::TableId table_;
  std::uint32_t family_;
  Compression& compression_;
  std::map<PackId, std::shared_ptr<const Pack>> kept_;
  std::size_t kept_bytes_ = 0;
  std::uint64_t packs_read_ = 0;
};

/// Where the pages of a region are, as a node and its base say.
struct RegionPlaces {
  struct Place {
    PackRef entry;  ///< no pack: the page is not stored
    bool plain = false;
  };
  std::array<Place, kRegionPages> pages;
  PackRef base;  ///< the node itself if it has none
};
/// Errors: kCorrupt.
Result<RegionPlaces> read_region(PackReader& packs, const RegionRef& region);

/// Errors: kCorrupt if the pack has none of that index.
Result<const Entry*> find_entry(const Pack& pack, std::uint16_t index);
Result<const Node*> find_node(const Pack& pack, std::uint16_t index);

}  // namespace sw::snapshot
