// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/collector.h"

#include <bit>

#include "snapshot/catalog.h"

namespace sw::snapshot {

void IndexSet::insert(std::size_t first, std::size_t count) {
  const std::size_t words = (first + count + kBits - 1) / kBits;
  if (words_.size() < words) words_.resize(words);
  for (std::size_t i = first; i < first + count; ++i)
    words_[i / kBits] |= std::uint64_t{1} << i % kBits;
}

std::size_t IndexSet::size() const {
  std::size_t size = 0;
  for (const std::uint64_t word : words_) size += static_cast<std::size_t>(std::popcount(word));
  return size;
}

void IndexSet::for_each(const std::function<void(std::uint16_t index)>& each) const {
  for (std::size_t i = 0; i < words_.size(); ++i) {
    for (std::uint64_t word = words_[i]; word != 0; word &= word - 1)
      each(
          static_cast<std::uint16_t>(i * kBits + static_cast<std::size_t>(std::countr_zero(word))));
  }
}

Collector::Collector(CollectionRoots roots) : roots_(std::move(roots)) {
  for (const PackId id : roots_.versions) work_[id].version = true;
}

Result<void> Collector::mark(PackReader& packs, const CollectionBudget& budget) {
  for (std::size_t i = 0; i < budget.marked_packs && !work_.empty(); ++i) {
    const auto first = work_.begin();
    const PackId id = first->first;
    const Work work = first->second;
    auto marked = mark_pack(packs, id, work);
    if (marked.ok()) {
      work_.erase(id);
      continue;
    }
    if (marked.error().code != ErrorCode::kCorrupt) return marked;
    damaged_sequence_ = id.sequence;
    damage_ = marked.error().message;
    work_.clear();
  }
  return {};
}

Result<void> Collector::mark_pack(PackReader& packs, PackId id, const Work& work) {
  SW_TRY(const Pack pack, packs.directory(id));
  if (work.version) SW_CHECK_OK(mark_version(pack));
  Result<void> marked;
  work.nodes.for_each([&](std::uint16_t index) {
    if (marked.ok()) marked = mark_node(pack, index);
  });
  SW_CHECK_OK(marked);
  // The version and the nodes of this very pack may have added entries of it.
  const IndexSet entries = work_[id].entries;
  entries.for_each([&](std::uint16_t index) {
    if (marked.ok()) marked = mark_chain(pack, index);
  });
  return marked;
}

Result<void> Collector::mark_version(const Pack& pack) {
  if (!pack.version)
    return Error{ErrorCode::kCorrupt, "snapshot pack " + to_string(pack.id) + ": no version"};
  needed_[pack.id].version = true;
  needed_[pack.version->host_tables].host_tables = true;
  for (const RegionRef& region : pack.version->regions) {
    needed_[region.node.pack].nodes.insert(region.node.index);
    if (region.node.pack == pack.id) SW_CHECK_OK(mark_node(pack, region.node.index));
    else work_[region.node.pack].nodes.insert(region.node.index);
  }
  return {};
}

Result<void> Collector::mark_node(const Pack& pack, std::uint16_t index) {
  SW_TRY(const Node* const node, find_node(pack, index));
  needed_[pack.id].nodes.insert(index);
  if (node->base.pack) {
    needed_[node->base.pack].nodes.insert(node->base.index);
    work_[node->base.pack].nodes.insert(node->base.index);
  }
  for (const PageRun& run : node->runs) {
    needed_[run.first.pack].entries.insert(run.first.index, run.length);
    if (!run.plain) work_[run.first.pack].entries.insert(run.first.index, run.length);
  }
  return {};
}

Result<void> Collector::mark_chain(const Pack& pack, std::uint16_t index) {
  SW_TRY(const Entry* const entry, find_entry(pack, index));
  if (entry->against != Against::kStored) return {};
  needed_[entry->base.pack].entries.insert(entry->base.index);
  work_[entry->base.pack].entries.insert(entry->base.index);
  return {};
}

/// Whether it may go if nothing needs it.
bool Collector::is_old(PackId id) const {
  if (id.owner >= roots_.owners_end || id.sequence <= damaged_sequence_) return false;
  const auto last = roots_.last_sequence.find(id.owner);
  return last == roots_.last_sequence.end() || id.sequence <= last->second;
}

Result<CollectionStep> Collector::sweep(storage::Reader& reader, storage::TableId table,
                                        std::uint32_t family, PackReader& packs,
                                        EntryCounts& counts, Compression& compression,
                                        const CollectionBudget& budget) const {
  CollectionStep step;
  step.resume_before = resume_before_;
  step.finished = true;
  storage::Range range = storage::Range::of_prefix(table, family_prefix(family));
  if (!resume_before_.empty()) range.to = resume_before_;

  std::size_t rows = 0;
  std::vector<std::pair<PackId, std::size_t>> to_prune;
  SW_CHECK_OK(
      reader.scan_keys(range, storage::Order::kDescending,
                       [&](std::string_view key, std::size_t value_bytes) -> Result<storage::Scan> {
                         if (step.changes.size() >= budget.erased_packs ||
                             to_prune.size() >= budget.pruned_packs || rows >= budget.swept_rows) {
                           step.finished = false;
                           return storage::Scan::kStop;
                         }
                         ++rows;
                         step.resume_before = key;
                         const auto row = version_of_key(key);
                         if (row && roots_.leaving_rows.contains(*row)) step.rows.push_back(*row);
                         const auto id = pack_of_key(key);
                         if (!id || !is_old(*id)) return storage::Scan::kContinue;
                         const auto needed = needed_.find(*id);
                         if (needed == needed_.end()) {
                           step.changes.push_back({.id = *id, .bytes_before = value_bytes});
                         } else if (value_bytes >= budget.prune_bytes_min &&
                                    is_sparse(*id, needed->second, counts, budget)) {
                           to_prune.emplace_back(*id, value_bytes);
                         }
                         return storage::Scan::kContinue;
                       }));
  for (const auto& [id, bytes_before] : to_prune) {
    SW_TRY(auto pruned, prune(packs, id, needed_.at(id), counts, compression, budget));
    if (pruned) step.changes.push_back({id, bytes_before, std::move(pruned)});
  }
  return step;
}

bool Collector::is_sparse(PackId id, const Needed& needed, const EntryCounts& counts,
                          const CollectionBudget& budget) {
  const auto count = counts.find(id);
  return count == counts.end() || static_cast<double>(needed.entries.size()) <=
                                      static_cast<double>(count->second) * budget.prune_below;
}

/// The pack with only what is needed, or nothing if that would not pay.
Result<std::optional<Bytes>> Collector::prune(PackReader& packs, PackId id, const Needed& needed,
                                              EntryCounts& counts, Compression& compression,
                                              const CollectionBudget& budget) const {
  SW_TRY(const auto row, packs.bytes(id));
  if (!row) return std::optional<Bytes>();
  SW_TRY(Pack pack, decode_pack(id, *row, PackPart::kAll, compression));
  counts[id] = pack.entries.size();
  const std::size_t parts_before =
      pack.entries.size() + pack.nodes.size() + (pack.version ? 1U : 0U);
  if (static_cast<double>(needed.entries.size()) >
      static_cast<double>(pack.entries.size()) * budget.prune_below) {
    return std::optional<Bytes>();
  }
  std::erase_if(pack.entries,
                [&](const Entry& entry) { return !needed.entries.contains(entry.index); });
  std::erase_if(pack.nodes, [&](const Node& node) { return !needed.nodes.contains(node.index); });
  if (!needed.version) pack.version.reset();
  const bool tables_go = pack.host_tables && !needed.host_tables;
  if (tables_go) pack.host_tables.reset();
  const std::size_t parts = pack.entries.size() + pack.nodes.size() + (pack.version ? 1U : 0U);
  if (parts == parts_before && !tables_go) return std::optional<Bytes>();
  SW_TRY(Bytes bytes, encode_pack(pack, compression));
  counts[id] = pack.entries.size();
  return std::optional<Bytes>(std::move(bytes));
}

}  // namespace sw::snapshot
