// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a SnapshotStore knows, and the steps that its operations are made of.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "snapshot/catalog.h"
#include "snapshot/collector.h"
#include "snapshot/compression.h"
#include "snapshot/history.h"
#include "snapshot/live_memory.h"
#include "snapshot/pack_reader.h"
#include "snapshot/snapshot_store.h"

namespace sw::snapshot {

Error invalid(std::string message);
Error not_found(std::string_view what, std::string_view name);
ContextEntry new_entry(std::uint32_t owner, std::uint32_t family, std::uint32_t next_sequence);
VersionInfo info_of(const KeptVersion& kept, const Version& version);

/// What the store knows of a family's garbage.
struct Family {
  std::optional<Collector> collector;
  std::size_t packs_written = 0;  // since the last collection started
  std::size_t packs_needed = 0;   // by the last collection
};

/// What an operation adds to a context beside pages.
struct Addition {
  KeptVersion version;
  std::string about = {};
  std::optional<VersionId> forgotten = {};  ///< another, which goes in the same commit
};

/// Sizes of what a commit writes.
struct Written {
  std::uint64_t packs = 0;
  std::uint64_t bytes = 0;
};

struct SnapshotStore::State {
  State(storage::ObjectStorage& object_storage, const Options& store_options)
      : storage(object_storage), options(store_options) {}

  storage::ObjectStorage& storage;
  Options options;
  Compression compression;
  /// For memories that are encoded while the store is in use.
  const std::shared_ptr<Compressions> compressions = std::make_shared<Compressions>();
  ContextEntries contexts;
  std::uint32_t next_owner = 1;
  std::map<std::uint32_t, Family> families;
  EntryCounts entry_counts;
  std::uint64_t collections = 0;
  std::string collection_error;
  std::string history_error;
  bool stale = false;
  /// Memories that pages were left out of. Those they may still ask for are kept.
  std::vector<std::weak_ptr<LiveMemory::State>> partly_read;

  PackReader reader_of(storage::Reader& reader, std::uint32_t family);
  /// One that knows nothing of what is stored.
  std::shared_ptr<LiveMemory::State> new_memory(std::string_view context, std::string_view build);

  // --- what is known of a context

  Result<ContextEntry*> find(std::string_view name);
  /// A context's newest version is in the last of its packs.
  Result<void> find_newest(ContextEntry& record);
  Result<Version> version_of(const ContextEntry& record, PackId id);
  /// Finds out which versions it keeps.
  Result<void> load_kept(ContextEntry& record);
  /// The rows of its history, oldest first; with those that are leaving.
  Result<std::vector<std::pair<KeptVersion, std::string>>> read_rows(const ContextEntry& record);
  /// The same without them.
  Result<std::vector<std::pair<KeptVersion, std::string>>> read_history(ContextEntry& record);
  /// kNotFound if what the version needs may have been collected.
  Result<KeptVersion> kept_of(ContextEntry& record, VersionId id);
  static bool is_checkpoint(const ContextEntry& record, VersionId id);
  Result<std::string> about_of(const ContextEntry& record, VersionId id);
  Result<void> load_usage(ContextEntry& record);
  /// The packs whose keys begin with `prefix`.
  Result<StorageUsage> usage_of(const std::string& prefix);

  PageLoader loader_of(const std::shared_ptr<LiveMemory::State>& live, BytesView image);
  /// The context's packs need not be kept for its memories any more.
  void forget_unread(std::string_view context);

  // --- commits

  /// After a commit that failed it is not known what is stored.
  Result<void> noting(Result<void> committed);
  Result<void> commit(const std::function<Result<void>(storage::Transaction&)>& body);
  /// Reads again what may be out of date. To be called first in each operation.
  Result<void> refresh();
  struct PendingSave;
  Result<void> prepare(PendingSave& save, const LiveMemory::State& memory,
                       const EncodedStep::State& step);
  Result<void> write(storage::Transaction& transaction, const PendingSave& save,
                     const EncodedStep::State& step, std::string_view context);
  Result<void> write(storage::Transaction& transaction, const ContextEntry& record,
                     const Addition& addition) const;
  void note_committed(ContextEntry& record, const Addition& addition, const Written& written);
  /// Commits a version that shares all its pages with another.
  Result<VersionInfo> append_version(ContextEntry& record, Version version, Addition addition,
                                     const ExtraWrites& extra_writes, const CommitVersion& commit,
                                     const ExtraWrites& before = {});
  /// Makes a copy of `target` the newest version, with `parent` before it.
  Result<VersionInfo> go_back(ContextEntry& record, const KeptVersion& target, VersionId parent,
                              std::optional<VersionId> forgotten, std::int64_t time_ms,
                              const ExtraWrites& extra_writes, const CommitVersion& commit);
  Result<void> change_checkpoints(std::string_view name, std::vector<CheckpointInfo> checkpoints,
                                  const ExtraWrites& extra_writes);

  // --- what nobody needs

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
