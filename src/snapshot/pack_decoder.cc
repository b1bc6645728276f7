// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "snapshot/pack.h"
#include "snapshot/pack_format.h"
#include "snapshot/wire.h"

namespace sw::snapshot {

namespace {

constexpr std::size_t kDirectoryBytesMax = std::size_t{16} << 20U;
constexpr std::size_t kDifferencesBytesMax = kPackEntriesMax * kPageBytes;
constexpr std::uint16_t kIndexMax = UINT16_MAX;

Error damaged(PackId id, std::string_view what) {
  return Error{ErrorCode::kCorrupt, fmt::format("snapshot pack {}: {}", to_string(id), what)};
}

Result<Bytes> read_section(WireReader& in, std::size_t bytes_max, Compression& compression) {
  const auto size = in.number<std::size_t>(bytes_max);
  const BytesView stored = in.bytes(in.count(size));
  if (!in.ok()) return Error{ErrorCode::kCorrupt, "a section's size is invalid"};
  if (stored.size() == size) return Bytes(stored.begin(), stored.end());
  return compression.decompress(stored, size);
}

void skip_section(WireReader& in, std::size_t bytes_max) {
  in.bytes(in.count(in.number<std::size_t>(bytes_max)));
}

class DirectoryReader {
 public:
  DirectoryReader(WireReader& in, Pack& pack, bool with_history)
      : in_(in), pack_(pack), with_history_(with_history) {}

  bool read() {
    const std::uint8_t flags = in_.u8();
    stride_ = in_.u8();
    if (flags > (kHasVersion | kHasHostTables) || (stride_ != 1 && stride_ != 4 && stride_ != 8))
      return false;
    has_host_tables_ = (flags & kHasHostTables) != 0;
    read_numbers();
    read_entries();
    read_nodes();
    if ((flags & kHasVersion) != 0) read_version();
    return in_.at_end() && lay_entries();
  }

  std::uint8_t stride() const { return stride_; }
  bool has_host_tables() const { return has_host_tables_; }
  std::size_t sparse_bytes() const { return sparse_bytes_; }
  std::size_t differences_bytes() const { return differences_bytes_; }

 private:
  void read_numbers() {
    ids_.push_back(pack_.id);
    const std::size_t count = in_.count(kPagesMax, 2);
    for (std::size_t i = 0; i < count; ++i) {
      PackId id;
      id.owner = in_.number();
      id.sequence = in_.number();
      if (!id || id.sequence >= pack_.id.sequence) in_.fail();
      ids_.push_back(id);
    }
  }

  PackId read_pack() {
    const auto number = in_.number<std::size_t>();
    if (number < ids_.size()) return ids_[number];
    in_.fail();
    return pack_.id;
  }

  /// `before` plus a signed step, within [0, max].
  std::uint32_t stepped(std::int64_t before, std::uint32_t max) {
    const std::int64_t step = in_.zigzag();
    const std::int64_t value = step < -std::int64_t{max} || step > max ? -1 : before + step;
    if (value >= 0 && value <= max) return static_cast<std::uint32_t>(value);
    in_.fail();
    return 0;
  }

  /// `next` plus what follows, at most `max`.
  std::uint32_t advanced(std::uint32_t next, std::uint32_t max) {
    const std::uint32_t gap = in_.number(max);
    if (next <= max && gap <= max - next) return next + gap;
    in_.fail();
    return 0;
  }

  void read_entries() {
    std::vector<Entry>& entries = pack_.entries;
    entries.resize(in_.count(kPackEntriesMax, 3));
    std::uint32_t next = 0;
    for (Entry& entry : entries) {
      entry.index = static_cast<std::uint16_t>(advanced(next, kIndexMax));
      next = entry.index + 1U;
    }
    std::int64_t page = 0;
    for (Entry& entry : entries) {
      entry.page = stepped(page, kPagesMax - 1);
      page = std::int64_t{entry.page} + 1;
    }
    for (Entry& entry : entries) {
      const std::uint8_t kind = in_.u8();
      const std::uint8_t against = kind & static_cast<std::uint8_t>(~kKindWhole);
      if (against > static_cast<std::uint8_t>(Against::kStored)) in_.fail();
      entry.against = static_cast<Against>(against);
      entry.whole = (kind & kKindWhole) != 0;
    }
    for (Entry& entry : entries) {
      if (entry.against == Against::kStored) entry.base.pack = read_pack();
    }
    for (Entry& entry : entries) {
      if (entry.against != Against::kStored) continue;
      entry.base.index = static_cast<std::uint16_t>(stepped(entry.index, kIndexMax));
      if (entry.base.pack == pack_.id) in_.fail();  // or a page could be its own base
    }
    for (Entry& entry : entries)
      entry.size = entry.whole ? kPageBytes : in_.number(kSparseBytesMax);
  }

  void read_base(Node& node) {
    const PackId pack = read_pack();
    if (pack != pack_.id) node.base = {pack, in_.number<std::uint16_t>()};
  }

  void read_nodes() {
    pack_.nodes.resize(in_.count(kPagesMax / kRegionPages, 3));
    for (Node& node : pack_.nodes) {
      node.index = in_.number<std::uint16_t>();
      node.region = in_.number(kPagesMax / kRegionPages - 1);
      if (!with_history_) read_base(node);
      node.runs.resize(in_.count(kRegionPages, 4));
      if (node.runs.empty()) in_.fail();
      std::uint32_t next = 0;
      std::vector<std::uint32_t> gaps;
      for (std::size_t i = 0; i < node.runs.size(); ++i) gaps.push_back(in_.number(kRegionPages));
      for (std::size_t i = 0; i < node.runs.size(); ++i) {
        PageRun& run = node.runs[i];
        const std::uint32_t packed = in_.number(2 * kRegionPages);
        run.length = static_cast<std::uint16_t>((packed >> 1U) + 1);
        run.plain = (packed & 1U) != 0;
        if (next + gaps[i] + run.length > kRegionPages) in_.fail();
        run.page_in_region = static_cast<std::uint16_t>(next + gaps[i]);
        next = std::uint32_t{run.page_in_region} + run.length;
      }
      for (PageRun& run : node.runs) run.first.pack = read_pack();
      std::int64_t index = 0;
      for (PageRun& run : node.runs) {
        run.first.index = static_cast<std::uint16_t>(stepped(index, kIndexMax));
        index = run.first.index + run.length;
        if (index > kIndexMax + 1) in_.fail();
      }
      if (!in_.ok()) return;
    }
  }

  void read_version() {
    Version& version = pack_.version.emplace();
    version.build = in_.text(kBuildBytesMax);
    version.memory_bytes = in_.number<std::uint64_t>(std::uint64_t{kPagesMax} * kPageBytes);
    version.time_ms = in_.zigzag();
    if (with_history_) {
      version.previous.owner = in_.number();
      version.previous.sequence = in_.number();
      if (version.previous.sequence >= pack_.id.sequence) in_.fail();
      version.history = in_.number();
      version.key_sequence = pack_.id.sequence;
    } else {
      version.key_sequence = pack_.id.sequence - in_.number(pack_.id.sequence);
    }
    version.pages = in_.number<std::uint64_t>(kPagesMax);
    version.digest = in_.u64();
    version.host_tables = read_pack();
    version.regions.resize(in_.count(kPagesMax / kRegionPages, 3));
    std::uint32_t next = 0;
    for (RegionRef& region : version.regions) {
      region.region = advanced(next, kPagesMax / kRegionPages - 1);
      next = region.region + 1;
    }
    for (RegionRef& region : version.regions) region.node.pack = read_pack();
    for (RegionRef& region : version.regions) region.node.index = in_.number<std::uint16_t>();
  }

  bool lay_entries() {
    for (const bool whole : {false, true}) {
      for (Entry& entry : pack_.entries) {
        if (entry.whole != whole) continue;
        entry.offset = static_cast<std::uint32_t>(differences_bytes_);
        differences_bytes_ += entry.size;
      }
      if (!whole) sparse_bytes_ = differences_bytes_;
    }
    return true;
  }

  WireReader& in_;
  Pack& pack_;
  const bool with_history_;
  std::vector<PackId> ids_;
  std::uint8_t stride_ = 1;
  bool has_host_tables_ = false;
  std::size_t sparse_bytes_ = 0;
  std::size_t differences_bytes_ = 0;
};

Result<void> read_body(WireReader in, bool with_history, PackPart part, Compression& compression,
                       Pack& pack) {
  SW_TRY(const Bytes directory, read_section(in, kDirectoryBytesMax, compression));
  WireReader directory_in(directory);
  DirectoryReader reader(directory_in, pack, with_history);
  if (!reader.read()) return Error{ErrorCode::kCorrupt, "its directory is invalid"};
  for (Entry& entry : pack.entries) entry.check = in.u32();

  if (part == PackPart::kDirectory) {
    skip_section(in, kDifferencesBytesMax);
  } else {
    SW_TRY(pack.differences, read_section(in, kDifferencesBytesMax, compression));
    if (pack.differences.size() != reader.differences_bytes()) {
      return Error{ErrorCode::kCorrupt, "its differences have the wrong size"};
    }
    if (reader.stride() != 1) {
      const BytesView whole = BytesView(pack.differences).subspan(reader.sparse_bytes());
      std::ranges::copy(
          untranspose(whole, reader.stride()),
          pack.differences.begin() + static_cast<std::ptrdiff_t>(reader.sparse_bytes()));
    }
  }
  if (reader.has_host_tables()) {
    if (part == PackPart::kDirectory) {
      pack.host_tables.emplace();
      skip_section(in, kHostTablesBytesMax);
    } else {
      SW_TRY(pack.host_tables, read_section(in, kHostTablesBytesMax, compression));
    }
  }
  if (!in.at_end()) return Error{ErrorCode::kCorrupt, "its sections do not fill it"};
  return {};
}

}  // namespace

Result<Pack> decode_pack(PackId id, BytesView bytes, PackPart part, Compression& compression) {
  if (bytes.size() < kHeaderBytes) return damaged(id, "too short");
  WireReader in(bytes);
  if (!std::ranges::equal(in.bytes(kMagic.size()), kMagic)) return damaged(id, "not a pack");
  const std::uint8_t version = in.u8();
  if (version != kPackVersion && version != kPackVersionWithHistory)
    return damaged(id, fmt::format("format version {} is unknown", version));
  const std::uint64_t sum = in.u64();
  if (sum != sum_of(id, bytes.subspan(kHeaderBytes))) return damaged(id, "checksum mismatch");
  Pack pack;
  pack.id = id;
  if (auto read = read_body(in, version == kPackVersionWithHistory, part, compression, pack);
      !read.ok())
    return damaged(id, read.error().message);
  return pack;
}

}  // namespace sw::snapshot
