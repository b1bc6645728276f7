// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/collector.h"

#include "snapshot/catalog.h"

namespace sw::snapshot {

Collector::Collector(CollectionRoots roots) : roots_(std::move(roots)) {
  for (const auto& [id, history] : roots_.versions) {
    Work& work = work_[id];
    work.version = true;
    work.history = history;
  }
}

Result<void> Collector::mark(PackReader& packs, const CollectionBudget& budget) {
  for (std::size_t i = 0; i < budget.marked_packs && !work_.empty(); ++i) {
    const auto first = work_.begin();
    const PackId id = first->first;
    const Work work = first->second;
    SW_CHECK_OK(mark_pack(packs, id, work));
    work_.erase(id);
  }
  return {};
}

Result<void> Collector::mark_pack(PackReader& packs, PackId id, const Work& work) {
  SW_TRY(const Pack pack, packs.directory(id));
  if (work.version) SW_CHECK_OK(mark_version(pack, work.history));
  for (const std::uint16_t index : work.nodes) SW_CHECK_OK(mark_node(pack, index));
  // The version and the nodes of this very pack may have added entries of it.
  const std::set<std::uint16_t> entries = work_[id].entries;
  for (const std::uint16_t index : entries) SW_CHECK_OK(mark_chain(pack, index));
  return {};
}

Result<void> Collector::mark_version(const Pack& pack, std::uint32_t history) {
  if (!pack.version)
    return Error{ErrorCode::kCorrupt, "snapshot pack " + to_string(pack.id) + ": no version"};
  needed_[pack.id].version = true;
  needed_[pack.version->host_tables].host_tables = true;
  for (const RegionRef& region : pack.version->regions) {
    needed_[region.node.pack].nodes.insert(region.node.index);
    if (region.node.pack == pack.id) SW_CHECK_OK(mark_node(pack, region.node.index));
    else work_[region.node.pack].nodes.insert(region.node.index);
  }
  if (history > 0 && pack.version->previous) {
    Work& previous = work_[pack.version->previous];
    previous.version = true;
    previous.history = std::max(previous.history, history - 1);
  }
  return {};
}

Result<void> Collector::mark_node(const Pack& pack, std::uint16_t index) {
  SW_TRY(const Node* const node, find_node(pack, index));
  needed_[pack.id].nodes.insert(index);
  for (const PageRun& run : node->runs) {
    std::set<std::uint16_t>& needed = needed_[run.first.pack].entries;
    for (std::uint32_t i = 0; i < run.length; ++i) {
      const auto entry = static_cast<std::uint16_t>(run.first.index + i);
      needed.insert(entry);
      if (!run.plain) work_[run.first.pack].entries.insert(entry);
    }
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

bool Collector::is_older(PackId id) const {
  if (id.owner >= roots_.owners_end) return false;
  const auto last = roots_.last_sequence.find(id.owner);
  return last == roots_.last_sequence.end() || id.sequence <= last->second;
}

Result<CollectionStep> Collector::sweep(storage::Reader& reader, storage::TableId table,
                                        std::uint32_t family, PackReader& packs,
                                        EntryCounts& counts, Compression& compression,
                                        const CollectionBudget& budget) const {
  CollectionStep step;
  step.resume_after = resume_after_;
  step.finished = true;
  storage::Range range = storage::Range::of_prefix(table, family_prefix(family));
  if (!resume_after_.empty()) range.from = resume_after_ + '\0';

  std::vector<std::pair<PackId, std::string>> to_prune;
  SW_CHECK_OK(reader.scan_keys(
      range, storage::Order::kAscending,
      [&](std::string_view key, std::size_t value_bytes) -> Result<storage::Scan> {
        if (step.erase.size() >= budget.erased_packs || to_prune.size() >= budget.pruned_packs) {
          step.finished = false;
          return storage::Scan::kStop;
        }
        step.resume_after = key;
        const auto id = pack_of_key(key);
        if (!id || !is_older(*id)) return storage::Scan::kContinue;
        const auto needed = needed_.find(*id);
        if (needed == needed_.end()) {
          step.erase.push_back(*id);
          return storage::Scan::kContinue;
        }
        const auto count = counts.find(*id);
        const bool sparse =
            count == counts.end() || static_cast<double>(needed->second.entries.size()) <=
                                         static_cast<double>(count->second) * budget.prune_below;
        if (value_bytes >= budget.prune_bytes_min && sparse) to_prune.emplace_back(*id, key);
        return storage::Scan::kContinue;
      }));
  for (const auto& [id, key] : to_prune) {
    SW_TRY(auto pruned, prune(packs, id, needed_.at(id), counts, compression, budget));
    if (pruned) step.put.emplace_back(id, *std::move(pruned));
  }
  return step;
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
