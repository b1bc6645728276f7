// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What a store does about versions and packs that nobody needs.

#include <algorithm>

#include "snapshot/store_state.h"

namespace sw::snapshot {

namespace {

/// A collection starts when as many packs were written since the last one started, or as many as
/// that one found to be needed if they are more.
constexpr std::size_t kCollectAfterPacks = 128;
/// A save's share of a collection, for each pack it writes.
constexpr std::size_t kMarkedPacksPerPack = 4;
constexpr std::size_t kErasedPacksPerSave = 64;
constexpr std::size_t kSweptRowsPerSave = 256;

}  // namespace

Result<CollectionRoots> SnapshotStore::State::roots_of(std::uint32_t family) {
  CollectionRoots roots;
  roots.owners_end = next_owner;
  for (auto& [name, record] : contexts) {
    if (record.family != family) continue;
    SW_CHECK_OK(find_newest(record));
    SW_CHECK_OK(load_kept(record));
    for (const KeptVersion& kept : *record.kept) roots.versions.insert(kept.id);
    for (const VersionId id : record.leaving)
      roots.leaving_rows.insert({record.owner, id.sequence});
    for (const CheckpointInfo& checkpoint : record.checkpoints)
      roots.versions.insert(checkpoint.version);
    roots.last_sequence[record.owner] = record.newest.id.sequence;
  }
  std::erase_if(partly_read, [](const auto& memory) { return memory.expired(); });
  for (const auto& memory : partly_read) {
    const auto live = memory.lock();
    if (live && live->family == family && live->unread_pages > 0)
      roots.versions.insert(live->based_on);
  }
  return roots;
}

Result<void> SnapshotStore::State::start_collection(std::uint32_t id, Family& family) {
  SW_TRY(CollectionRoots roots, roots_of(id));
  family.collector.emplace(std::move(roots));
  family.packs_written = 0;
  return {};
}

Result<CollectionStep> SnapshotStore::State::look_for_garbage(std::uint32_t id, Family& family,
                                                              const CollectionBudget& budget) {
  CollectionStep step;
  SW_CHECK_OK(storage.read([&](storage::Reader& reader) -> Result<void> {
    PackReader packs = reader_of(reader, id);
    if (!family.collector->marked()) return family.collector->mark(packs, budget);
    SW_TRY(step, family.collector->sweep(reader, options.packs_table, id, packs, entry_counts,
                                         compression, budget));
    return {};
  }));
  return step;
}

Result<void> SnapshotStore::State::apply(storage::Transaction& transaction, std::uint32_t family,
                                         const CollectionStep& step) {
  for (const PackId row : step.rows) {
    SW_CHECK_OK(
        transaction.erase(options.packs_table, version_key(family, row.owner, row.sequence)));
  }
  for (const CollectionStep::Change& change : step.changes) {
    const std::string key = pack_key(family, change.id);
    SW_CHECK_OK(change.bytes ? transaction.put(options.packs_table, key, *change.bytes)
                             : transaction.erase(options.packs_table, key));
  }
  return {};
}

void SnapshotStore::State::note_applied(Family& family, const CollectionStep& step) {
  if (!family.collector) return;
  for (const CollectionStep::Change& change : step.changes) {
    if (!change.bytes) entry_counts.erase(change.id);
    for (auto& [name, record] : contexts) {
      if (record.owner != change.id.owner || !record.usage) continue;
      record.usage->packs -= change.bytes ? 0U : 1U;
      record.usage->bytes -= change.bytes_before;
      record.usage->bytes += change.bytes ? change.bytes->size() : 0U;
    }
  }
  const std::set<PackId> rows(step.rows.begin(), step.rows.end());
  for (auto& [name, record] : contexts) {
    if (rows.empty()) break;
    std::erase_if(record.leaving, [&, owner = record.owner](VersionId id) {
      return rows.contains({owner, id.sequence});
    });
  }
  family.collector->advance(step);
  if (!step.finished) return;
  family.packs_needed = family.collector->needed_packs();
  collection_error = family.collector->damage();
  family.collector.reset();
  ++collections;
}

CollectionStep SnapshotStore::State::collect_a_little(std::uint32_t id, std::size_t packs) {
  Family& family = families[id];
  if (!options.collect_while_saving) return {};
  const std::size_t threshold = std::max(kCollectAfterPacks, family.packs_needed);
  if (!family.collector && family.packs_written < threshold) return {};
  const CollectionBudget budget = {.marked_packs = packs * kMarkedPacksPerPack,
                                   .swept_rows = kSweptRowsPerSave,
                                   .erased_packs = kErasedPacksPerSave,
                                   .pruned_packs = 1};
  auto step = [&]() -> Result<CollectionStep> {
    if (!family.collector) SW_CHECK_OK(start_collection(id, family));
    return look_for_garbage(id, family, budget);
  }();
  if (step.ok()) return *std::move(step);
  give_up(family, step.error());
  return {};
}

void SnapshotStore::State::give_up(Family& family, const Error& error) {
  family.collector.reset();
  family.packs_written = 0;
  collection_error = error.message;
}

Result<void> SnapshotStore::State::collect_family(std::uint32_t id,
                                                  const CollectionBudget& budget) {
  Family& family = families[id];
  SW_CHECK_OK(start_collection(id, family));
  while (family.collector) {
    auto step = look_for_garbage(id, family, budget);
    if (!step.ok()) {
      give_up(family, step.error());
      return std::move(step).error();
    }
    if (!step->changes.empty() || !step->rows.empty()) {
      SW_CHECK_OK(
          commit([&](storage::Transaction& transaction) { return apply(transaction, id, *step); }));
    }
    note_applied(family, *step);
  }
  return {};
}

}  // namespace sw::snapshot
