// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a SnapshotStore knows, and the steps that its operations are made of.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "snapshot/catalog.h"
#include "snapshot/collector.h"
#include "snapshot/compression.h"
#include "snapshot/pack_reader.h"
#include "snapshot/snapshot_store.h"

namespace sw::snapshot {

Error not_found(std::string_view what, std::string_view name);
VersionInfo info_of(PackId id, const Version& version);

/// What the store knows of a family's garbage.
struct Family {
  std::optional<Collector> collector;
  std::size_t packs_written = 0;  // since the last collection started
  std::size_t packs_needed = 0;   // by the last collection
};

struct SnapshotStore::State {
  State(storage::ObjectStorage& object_storage, const Options& store_options)
      : storage(object_storage), options(store_options) {}

  storage::ObjectStorage& storage;
  Options options;
  Compression compression;
  ContextEntries contexts;
  std::uint32_t next_owner = 1;
  std::map<std::uint32_t, Family> families;
  EntryCounts entry_counts;
  std::uint64_t collections = 0;
  std::string collection_error;
  bool stale = false;

  PackReader reader_of(storage::Reader& reader, std::uint32_t family);

  Result<ContextEntry*> find(std::string_view name);

  /// A context's newest version is the last of its packs.
  Result<void> find_newest(ContextEntry& record);

  Result<Version> version_of(const ContextEntry& record, PackId id);

  /// The newest version and those that undo can reach.
  Result<std::vector<VersionInfo>> history_of(const ContextEntry& record,
                                              std::uint32_t runs_max = UINT32_MAX);

  /// How many runs can be undone from a version. kNotFound if what the version needs may have been
  /// collected.
  Result<std::uint32_t> check_kept(const ContextEntry& record, PackId id);

  /// After a commit that failed it is not known what is stored.
  Result<void> commit(const std::function<Result<void>(storage::Transaction&)>& body);

  /// Reads again what may be out of date. To be called first in each operation.
  Result<void> refresh();

  /// The packs whose keys begin with `prefix`.
  Result<StorageUsage> usage_of(const std::string& prefix);

  void note_committed(ContextEntry& record, PackId newest, std::uint32_t history,
                      std::size_t packs);

  Result<VersionInfo> append_version(ContextEntry& record, Version version,
                                     const ExtraWrites& extra_writes,
                                     const ExtraWrites& before = {});

  Result<void> change_checkpoints(std::string_view name, std::vector<CheckpointInfo> checkpoints,
                                  const ExtraWrites& extra_writes);

  Result<CollectionRoots> roots_of(std::uint32_t family);

  Result<void> start_collection(std::uint32_t id, Family& family);

  /// Goes on with the collection of a family; what it wants changed comes back.
  Result<CollectionStep> look_for_garbage(std::uint32_t id, Family& family,
                                          const CollectionBudget& budget);

  Result<void> apply(storage::Transaction& transaction, std::uint32_t family,
                     const CollectionStep& step);

  void note_applied(Family& family, const CollectionStep& step);

  /// The share of a save that writes `packs`. Garbage that cannot be looked for stays, and the save
  /// goes on.
  CollectionStep collect_a_little(std::uint32_t id, std::size_t packs);

  /// Something that is needed cannot be read, so what it needs is not known, and nothing may be
  /// deleted. A later collection may do without it.
  void give_up(Family& family, const Error& error);

  Result<void> collect_family(std::uint32_t id, const CollectionBudget& budget);
};

}  // namespace sw::snapshot
