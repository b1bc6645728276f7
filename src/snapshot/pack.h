// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A pack is what one step of a context writes: one row of the storage. It holds the pages that
// changed, the parts of the page table that changed, and the version that the step made. Format:
// docs/formats/snapshot.md.
//
// A page table maps page numbers to entries of packs. It is a tree of two levels which shares what
// did not change with older tables: a version lists nodes, one for each region of 256 pages, and a
// node lists entries, both wherever they were written. So a fork, a checkpoint or going back is one
// more version, and copies nothing.
//
// Everything a pack refers to was written before it and has a smaller sequence number, in forks
// too.

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "snapshot/compression.h"
#include "snapshot/page.h"

namespace sw::snapshot {

inline constexpr std::uint8_t kPackVersion = 2;
/// Packs of this version are still read: theirs had the history where now is the key step.
inline constexpr std::uint8_t kPackVersionWithHistory = 1;
inline constexpr std::uint32_t kRegionPages = 256;
inline constexpr std::uint32_t kPagesMax = 1U << 20U;  ///< 4 GiB
inline constexpr std::size_t kPackEntriesMax = 256;
inline constexpr std::size_t kHostTablesBytesMax = std::size_t{64} << 20U;
inline constexpr std::size_t kBuildBytesMax = 256;
/// A difference that takes more than this as runs is written as a whole page.
inline constexpr std::size_t kSparseBytesMax = 1024;

/// Of a version too: that of the pack which holds it. `owner` is the context that wrote it.
struct PackId {
  std::uint32_t owner = 0;
  std::uint32_t sequence = 0;  ///< from 1 on; 0: none

  auto operator<=>(const PackId&) const = default;
  explicit operator bool() const { return sequence != 0; }
};
/// Names a version within its store; text form: to_string, parse_pack_id.
using VersionId = PackId;
/// "owner.sequence"
std::string to_string(PackId id);
std::optional<PackId> parse_pack_id(std::string_view text);

/// A page or a table node within a pack.
struct PackRef {
  PackId pack;
  std::uint16_t index = 0;
  auto operator<=>(const PackRef&) const = default;
};

/// What a stored page is the difference to.
enum class Against : std::uint8_t { kZero, kImage, kStored };

struct Entry {
  std::uint16_t index = 0;  ///< its name in the pack, kept when others are pruned
  std::uint32_t page = 0;
  Against against = Against::kZero;
  bool whole = false;        ///< the difference is a whole page, else it is sparse
  PackRef base{};            ///< with kStored
  std::uint32_t check = 0;   ///< of the page's content
  std::uint32_t offset = 0;  ///< of the difference in Pack::differences
  std::uint32_t size = 0;
};

/// Consecutive pages in consecutive entries of one pack.
struct PageRun {
  std::uint16_t page_in_region = 0;
  std::uint16_t length = 0;
  PackRef first;
  bool plain = false;  ///< none of the entries is a difference to a stored page
};

/// The stored pages of a region, or how they differ from those of another node: where `runs` say
/// nothing of a page, that one does. It has no base itself.
struct Node {
  std::uint16_t index = 0;
  std::uint32_t region = 0;
  std::vector<PageRun> runs;
  PackRef base = {};  ///< no pack: there is none
};

struct RegionRef {
  std::uint32_t region = 0;
  PackRef node;
};

struct Version {
  std::string build;
  std::uint64_t memory_bytes = 0;
  std::int64_t time_ms = 0;
  /// The last sequence of the key step before it, or its own: pages in later packs are not in packs
  /// of key steps.
  std::uint32_t key_sequence = 0;
  std::uint64_t pages = 0;   ///< stored ones
  std::uint64_t digest = 0;  ///< over all of them
  PackId host_tables;        ///< the pack that holds them, perhaps this one
  std::vector<RegionRef> regions;

  // Of packs of version 1 only.
  PackId previous;            ///< where undo led
  std::uint32_t history = 0;  ///< how many versions before this one were kept for undo
};

struct Pack {
  PackId id;
  std::vector<Entry> entries{};
  Bytes differences{};
  std::vector<Node> nodes{};
  std::optional<Version> version{};
  std::optional<Bytes> host_tables{};
};

/// Whether to read the differences and host tables too, or only what says where things are.
enum class PackPart : std::uint8_t { kAll, kDirectory };

Result<Bytes> encode_pack(const Pack& pack, Compression& compression);
/// Errors: kCorrupt, saying what is wrong.
Result<Pack> decode_pack(PackId id, BytesView bytes, PackPart part, Compression& compression);

}  // namespace sw::snapshot
