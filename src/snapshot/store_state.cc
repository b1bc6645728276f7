// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/store_state.h"

#include <fmt/format.h>

#include <algorithm>

namespace sw::snapshot {

namespace {

/// A collection starts when as many packs were written since the last one started, or half of what
/// that one found to be needed if that is more.
constexpr std::size_t kCollectAfterPacks = 32;
/// A save's share of a collection, for each pack it writes.
constexpr std::size_t kMarkedPacksPerPack = 4;
constexpr std::size_t kErasedPacksPerSave = 64;

}  // namespace

Error not_found(std::string_view what, std::string_view name) {
  return Error{ErrorCode::kNotFound, fmt::format("no {} \"{}\"", what, name)};
}

VersionInfo info_of(PackId id, const Version& version) {
  return {id, version.build, version.memory_bytes, version.pages, version.time_ms, version.history};
}

PackReader SnapshotStore::State::reader_of(storage::Reader& reader, std::uint32_t family) {
  return {reader, options.packs_table, family, compression};
}

Result<ContextEntry*> SnapshotStore::State::find(std::string_view name) {
  SW_CHECK_OK(refresh());
  const auto found = contexts.find(name);
  if (found == contexts.end()) return not_found("context", name);
  SW_CHECK_OK(find_newest(found->second));
  return &found->second;
}

Result<void> SnapshotStore::State::find_newest(ContextEntry& record) {
  if (record.newest) return {};
  const std::string prefix = owner_prefix(record.family, record.owner);
  PackId newest;
  SW_CHECK_OK(storage.read([&](storage::Reader& reader) {
    return reader.scan_keys(storage::Range::of_prefix(options.packs_table, prefix),
                            storage::Order::kDescending,
                            [&](std::string_view key, std::size_t) -> Result<storage::Scan> {
                              if (const auto id = pack_of_key(key)) newest = *id;
                              return storage::Scan::kStop;
                            });
  }));
  if (!newest) return Error{ErrorCode::kCorrupt, "a context has no snapshot pack"};
  SW_TRY(const Version version, version_of(record, newest));
  record.newest = newest;
  record.history = version.history;
  record.next_sequence = newest.sequence + 1;
  return {};
}

Result<Version> SnapshotStore::State::version_of(const ContextEntry& record, PackId id) {
  Version version;
  SW_CHECK_OK(storage.read([&](storage::Reader& reader) -> Result<void> {
    SW_TRY(Pack pack, reader_of(reader, record.family).directory(id));
    if (!pack.version) {
      return Error{ErrorCode::kCorrupt, fmt::format("snapshot pack {}: no version", to_string(id))};
    }
    version = *std::move(pack.version);
    return {};
  }));
  return version;
}

Result<std::vector<VersionInfo>> SnapshotStore::State::history_of(const ContextEntry& record,
                                                                  std::uint32_t runs_max) {
  std::vector<VersionInfo> found;
  PackId id = record.newest;
  for (std::uint32_t i = 0; i <= record.history && i <= runs_max && id; ++i) {
    SW_TRY(const Version version, version_of(record, id));
    found.push_back(info_of(id, version));
    found.back().history = record.history - i;
    id = version.previous;
  }
  return found;
}

Result<std::uint32_t> SnapshotStore::State::check_kept(const ContextEntry& record, PackId id) {
  if (id == record.newest) return record.history;
  SW_TRY(const auto versions, history_of(record));
  const auto found = std::ranges::find(versions, id, &VersionInfo::id);
  if (found != versions.end()) return found->history;
  if (std::ranges::find(record.checkpoints, id, &CheckpointInfo::version) !=
      record.checkpoints.end())
    return 0;
  return not_found("version", to_string(id));
}

Result<void> SnapshotStore::State::commit(
    const std::function<Result<void>(storage::Transaction&)>& body) {
  auto committed = storage.transact(body);
  stale = stale || !committed.ok();
  return committed;
}

Result<void> SnapshotStore::State::refresh() {
  if (!stale) return {};
  ContextCatalog catalog;
  SW_CHECK_OK(storage.read([&](storage::Reader& reader) -> Result<void> {
    SW_TRY(catalog, read_catalog(reader, options.contexts_table));
    return {};
  }));
  contexts = std::move(catalog.contexts);
  next_owner = catalog.next_owner;
  families.clear();
  entry_counts.clear();
  stale = false;
  return {};
}

void SnapshotStore::State::note_committed(ContextEntry& record, PackId newest,
                                          std::uint32_t history, std::size_t packs) {
  record.newest = newest;
  record.history = history;
  record.next_sequence = newest.sequence + 1;
  families[record.family].packs_written += packs;
}

Result<VersionInfo> SnapshotStore::State::append_version(ContextEntry& record, Version version,
                                                         const ExtraWrites& extra_writes,
                                                         const ExtraWrites& before) {
  Pack pack{.id = {record.owner, record.next_sequence}};
  pack.version = std::move(version);
  SW_TRY(const Bytes bytes, encode_pack(pack, compression));
  SW_CHECK_OK(commit([&](storage::Transaction& transaction) -> Result<void> {
    if (before) SW_CHECK_OK(before(transaction));
    SW_CHECK_OK(transaction.put(options.packs_table, pack_key(record.family, pack.id), bytes));
    return extra_writes ? extra_writes(transaction) : Result<void>();
  }));
  entry_counts[pack.id] = 0;
  note_committed(record, pack.id, pack.version->history, 1);
  return info_of(pack.id, *pack.version);
}

Result<void> SnapshotStore::State::change_checkpoints(std::string_view name,
                                                      std::vector<CheckpointInfo> checkpoints,
                                                      const ExtraWrites& extra_writes) {
  ContextEntry changed = contexts.find(name)->second;
  changed.checkpoints = std::move(checkpoints);
  SW_CHECK_OK(commit([&](storage::Transaction& transaction) -> Result<void> {
    SW_CHECK_OK(put_context(transaction, options.contexts_table, name, changed));
    return extra_writes ? extra_writes(transaction) : Result<void>();
  }));
  contexts.find(name)->second.checkpoints = std::move(changed.checkpoints);
  return {};
}

Result<CollectionRoots> SnapshotStore::State::roots_of(std::uint32_t family) {
  CollectionRoots roots;
  roots.owners_end = next_owner;
  for (auto& [name, record] : contexts) {
    if (record.family != family) continue;
    SW_CHECK_OK(find_newest(record));
    roots.versions[record.newest] = record.history;
    for (const CheckpointInfo& checkpoint : record.checkpoints)
      roots.versions.emplace(checkpoint.version, 0);
    roots.last_sequence[record.owner] = record.newest.sequence;
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
  for (const PackId id : step.erase) {
    SW_CHECK_OK(transaction.erase(options.packs_table, pack_key(family, id)));
  }
  for (const auto& [id, bytes] : step.put) {
    SW_CHECK_OK(transaction.put(options.packs_table, pack_key(family, id), bytes));
  }
  return {};
}

void SnapshotStore::State::note_applied(Family& family, const CollectionStep& step) {
  if (!family.collector) return;
  for (const PackId id : step.erase) entry_counts.erase(id);
  family.collector->advance(step);
  if (!step.finished) return;
  family.packs_needed = family.collector->needed_packs();
  family.collector.reset();
  ++collections;
  collection_error.clear();
}

CollectionStep SnapshotStore::State::collect_a_little(std::uint32_t id, std::size_t packs) {
  Family& family = families[id];
  if (!options.collect_while_saving) return {};
  const std::size_t threshold = std::max(kCollectAfterPacks, family.packs_needed / 2);
  if (!family.collector && family.packs_written < threshold) return {};
  const CollectionBudget budget = {.marked_packs = packs * kMarkedPacksPerPack,
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
    if (!step->erase.empty() || !step->put.empty()) {
      SW_CHECK_OK(
          commit([&](storage::Transaction& transaction) { return apply(transaction, id, *step); }));
    }
    note_applied(family, *step);
  }
  return {};
}

Result<StorageUsage> SnapshotStore::State::usage_of(const std::string& prefix) {
  StorageUsage usage;
  SW_CHECK_OK(storage.read([&](storage::Reader& reader) {
    usage = {};
    return reader.scan_keys(
        storage::Range::of_prefix(options.packs_table, prefix), storage::Order::kAscending,
        [&](std::string_view, std::size_t value_bytes) -> Result<storage::Scan> {
          ++usage.packs;
          usage.bytes += value_bytes;
          return storage::Scan::kContinue;
        });
  }));
  return usage;
}

}  // namespace sw::snapshot
