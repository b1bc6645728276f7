// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads and checks packs, and keeps some of what it read. A reader is good within one transaction;
// what it keeps is good for longer: packs never change, except to lose what nothing needs.

#include <array>
#include <cstdint>
#include <map>
#include <memory>

#include "sandbox_workers/base/result.h"
#include "snapshot/compression.h"
#include "snapshot/pack.h"
#include "storage/storage.h"

namespace sw::snapshot {

/// Packs of one family.
class PackCache {
 public:
  explicit PackCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  std::shared_ptr<const Pack> find(PackId id) const;
  void put(const std::shared_ptr<const Pack>& pack);
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::map<PackId, std::shared_ptr<const Pack>> packs_;  // shared with those who use them now
};

class PackReader {
 public:
  /// `kept` outlives it; null: it keeps what it reads itself.
  PackReader(storage::Reader& reader, storage::TableId table, std::uint32_t family,
             Compression& compression, PackCache* kept = nullptr)
      : reader_(reader), table_(table), family_(family), compression_(compression), kept_(kept) {}

  /// Shared with the reader, which may drop its own share at the next call.
  /// Errors: kCorrupt if it is damaged or missing.
  Result<std::shared_ptr<const Pack>> pack(PackId id);
  Result<Pack> directory(PackId id);
  /// Null if there is no such pack.
  Result<std::optional<Bytes>> bytes(PackId id);

  std::uint64_t packs_read() const { return packs_read_; }

 private:
  static constexpr std::size_t kKeptBytesMax = std::size_t{32} << 20U;

  PackCache& kept() { return kept_ == nullptr ? own_ : *kept_; }

  storage::Reader& reader_;
  storage::TableId table_;
  std::uint32_t family_;
  Compression& compression_;
  PackCache* kept_;
  PackCache own_{kKeptBytesMax};
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
