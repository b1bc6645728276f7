// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "snapshot/pack.h"
#include "snapshot/pack_format.h"
#include "snapshot/wire.h"

namespace sw::snapshot {

namespace {

/// Smaller sections grow in zstd.
constexpr std::size_t kCompressBytesMin = 24;
/// So much of the whole pages decides by which stride all are transposed.
constexpr std::size_t kSampleBytes = 16 * kPageBytes;

/// The packs that a pack refers to, numbered; 0 is the pack itself.
class PackNumbers {
 public:
  explicit PackNumbers(const Pack& pack) : numbers_{{pack.id, 0}} {
    std::vector<PackId> ids;
    for (const Entry& entry : pack.entries) {
      if (entry.against == Against::kStored) ids.push_back(entry.base.pack);
    }
    for (const Node& node : pack.nodes) {
      for (const PageRun& run : node.runs) ids.push_back(run.first.pack);
      if (node.base.pack) ids.push_back(node.base.pack);
    }
    if (pack.version) {
      ids.push_back(pack.version->host_tables);
      for (const RegionRef& region : pack.version->regions) ids.push_back(region.node.pack);
    }
    std::sort(ids.begin(), ids.end(), std::greater<>());
    for (const PackId id : ids) {
      if (numbers_.emplace(id, numbers_.size()).second) others_.push_back(id);
    }
  }

  std::uint64_t of(PackId id) const { return numbers_.at(id); }
  const std::vector<PackId>& others() const { return others_; }

 private:
  std::map<PackId, std::size_t> numbers_;
  std::vector<PackId> others_;
};

void write_entries(WireWriter& out, const Pack& pack, const PackNumbers& numbers) {
  out.varint(pack.entries.size());
  std::uint32_t next = 0;
  for (const Entry& entry : pack.entries) {
    out.varint(entry.index - next);
    next = entry.index + 1U;
  }
  std::int64_t page = 0;
  for (const Entry& entry : pack.entries) {
    out.zigzag(entry.page - page);
    page = entry.page + 1;
  }
  for (const Entry& entry : pack.entries) {
    out.u8(static_cast<std::uint8_t>(static_cast<std::uint8_t>(entry.against) |
                                     (entry.whole ? kKindWhole : 0)));
  }
  for (const Entry& entry : pack.entries) {
    if (entry.against == Against::kStored) out.varint(numbers.of(entry.base.pack));
  }
  for (const Entry& entry : pack.entries) {
    if (entry.against == Against::kStored) out.zigzag(std::int64_t{entry.base.index} - entry.index);
  }
  for (const Entry& entry : pack.entries) {
    if (!entry.whole) out.varint(entry.size);
  }
}

void write_nodes(WireWriter& out, const Pack& pack, const PackNumbers& numbers) {
  out.varint(pack.nodes.size());
  for (const Node& node : pack.nodes) {
    out.varint(node.index);
    out.varint(node.region);
    out.varint(node.base.pack ? numbers.of(node.base.pack) : 0);
    if (node.base.pack) out.varint(node.base.index);
    out.varint(node.runs.size());
    std::uint32_t next = 0;
    for (const PageRun& run : node.runs) {
      out.varint(run.page_in_region - next);
      next = std::uint32_t{run.page_in_region} + run.length;
    }
    for (const PageRun& run : node.runs)
      out.varint(((run.length - 1U) << 1U) | (run.plain ? 1U : 0U));
    for (const PageRun& run : node.runs) out.varint(numbers.of(run.first.pack));
    std::int64_t index = 0;
    for (const PageRun& run : node.runs) {
      out.zigzag(run.first.index - index);
      index = run.first.index + run.length;
    }
  }
}

void write_version(WireWriter& out, const Version& version, std::uint32_t own_sequence,
                   const PackNumbers& numbers) {
  out.text(version.build);
  out.varint(version.memory_bytes);
  out.zigzag(version.time_ms);
  out.varint(own_sequence - version.key_sequence);
  out.varint(version.pages);
  out.u64(version.digest);
  out.varint(numbers.of(version.host_tables));
  out.varint(version.regions.size());
  std::uint32_t next = 0;
  for (const RegionRef& region : version.regions) {
    out.varint(region.region - next);
    next = region.region + 1;
  }
  for (const RegionRef& region : version.regions) out.varint(numbers.of(region.node.pack));
  for (const RegionRef& region : version.regions) out.varint(region.node.index);
}

Result<void> write_section(WireWriter& out, BytesView section, Compression& compression) {
  out.varint(section.size());
  if (section.size() >= kCompressBytesMin) {
    SW_TRY(const Bytes compressed, compression.compress(section));
    if (compressed.size() < section.size()) {
      out.varint(compressed.size());
      out.bytes(compressed);
      return {};
    }
  }
  out.varint(section.size());
  out.bytes(section);
  return {};
}

/// The stride (1, 4 or 8) by which a sample of the whole pages compresses best.
Result<std::uint8_t> best_stride(BytesView whole, Compression& compression) {
  const BytesView sample = whole.first(std::min(whole.size(), kSampleBytes));
  std::uint8_t best = 1;
  std::size_t best_size = SIZE_MAX;
  for (const std::uint8_t stride : {std::uint8_t{1}, std::uint8_t{4}, std::uint8_t{8}}) {
    SW_TRY(const Bytes compressed, compression.compress(transpose(sample, stride)));
    if (compressed.size() < best_size) {
      best_size = compressed.size();
      best = stride;
    }
  }
  return best;
}

/// The pack's differences in the order of the format: sparse ones first, whole ones after them.
struct OrderedDifferences {
  Bytes bytes;
  std::uint8_t stride = 1;
};

Result<OrderedDifferences> order_differences(const Pack& pack, Compression& compression) {
  OrderedDifferences ordered;
  Bytes whole;
  for (const Entry& entry : pack.entries) {
    const BytesView from = BytesView(pack.differences).subspan(entry.offset, entry.size);
    Bytes& to = entry.whole ? whole : ordered.bytes;
    to.insert(to.end(), from.begin(), from.end());
  }
  if (whole.empty()) return ordered;
  SW_TRY(ordered.stride, best_stride(whole, compression));
  if (ordered.stride != 1) whole = transpose(whole, ordered.stride);
  ordered.bytes.insert(ordered.bytes.end(), whole.begin(), whole.end());
  return ordered;
}

}  // namespace

Result<Bytes> encode_pack(const Pack& pack, Compression& compression) {
  SW_TRY(const OrderedDifferences ordered, order_differences(pack, compression));
  const PackNumbers numbers(pack);
  WireWriter directory;
  directory.u8(static_cast<std::uint8_t>((pack.version ? kHasVersion : 0) |
                                         (pack.host_tables ? kHasHostTables : 0)));
  directory.u8(ordered.stride);
  directory.varint(numbers.others().size());
  for (const PackId id : numbers.others()) {
    directory.varint(id.owner);
    directory.varint(id.sequence);
  }
  write_entries(directory, pack, numbers);
  write_nodes(directory, pack, numbers);
  if (pack.version) write_version(directory, *pack.version, pack.id.sequence, numbers);

  WireWriter body;
  SW_CHECK_OK(write_section(body, directory.out(), compression));
  for (const Entry& entry : pack.entries) body.u32(entry.check);
  SW_CHECK_OK(write_section(body, ordered.bytes, compression));
  if (pack.host_tables) SW_CHECK_OK(write_section(body, *pack.host_tables, compression));

  WireWriter out;
  out.bytes(kMagic);
  out.u8(kPackVersion);
  out.u64(sum_of(pack.id, body.out()));
  out.bytes(body.out());
  return out.take();
}

}  // namespace sw::snapshot
