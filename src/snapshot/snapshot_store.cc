// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/snapshot_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "snapshot/live_memory.h"
#include "snapshot/restorer.h"
#include "snapshot/step_encoder.h"
#include "snapshot/store_state.h"

namespace sw::snapshot {

SnapshotStore::SnapshotStore(std::unique_ptr<State> state) : state_(std::move(state)) {}
SnapshotStore::~SnapshotStore() = default;

Result<std::unique_ptr<SnapshotStore>> SnapshotStore::open(storage::ObjectStorage& storage,
                                                           const Options& options) {
  auto state = std::make_unique<State>(storage, options);
  SW_CHECK_OK(storage.read([&](storage::Reader& reader) -> Result<void> {
    SW_TRY(ContextCatalog catalog, read_catalog(reader, options.contexts_table));
    state->contexts = std::move(catalog.contexts);
    state->next_owner = catalog.next_owner;
    return {};
  }));
  return std::unique_ptr<SnapshotStore>(new SnapshotStore(std::move(state)));
}

std::vector<std::string> SnapshotStore::contexts() const {
  std::vector<std::string> names;
  for (const auto& [name, record] : state_->contexts) names.push_back(name);
  return names;
}

bool SnapshotStore::has(std::string_view context) const {
  return state_->contexts.contains(context);
}

Result<LiveMemory> SnapshotStore::begin(std::string_view context, std::string_view build) {
  SW_CHECK_OK(check_context_name(context));
  SW_CHECK_OK(state_->refresh());
  if (build.size() > kBuildBytesMax) return invalid("the build's name is too long");
  auto live = state_->new_memory(context, build);
  if (has(context)) {
    SW_TRY(const ContextEntry* const record, state_->find(context));
    live->owner = record->owner;
    live->based_on = record->newest.id;
    live->step = record->newest.step;
  } else {
    live->owner = state_->next_owner++;
  }
  return LiveMemory(std::move(live));
}

/// A save until it is committed.
struct SnapshotStore::State::PendingSave {
  bool is_new = false;  ///< the context is
  ContextEntry fresh = {};
  ContextEntry* record = nullptr;
  Addition addition = {};
  CollectionStep garbage = {};
};

Result<void> SnapshotStore::State::prepare(PendingSave& save, const LiveMemory::State& memory,
                                           const EncodedStep::State& step) {
  save.is_new = !contexts.contains(memory.context);
  save.fresh = new_entry(memory.owner, memory.owner, 1);
  save.record = &save.fresh;
  if (!save.is_new) {
    SW_TRY(save.record, find(memory.context));
  }
  const KeptVersion& before = save.record->newest;
  if (step.version.parent != before.id) {
    return invalid(fmt::format(
        "context \"{}\" has advanced past this memory: its newest version is {}, not {}",
        memory.context, to_string(before.id), to_string(step.version.parent)));
  }
  save.addition = {.version = step.version, .about = step.about};
  if (!save.is_new) save.garbage = collect_a_little(save.record->family, step.packs.size());
  return {};
}

Result<void> SnapshotStore::State::write(storage::Transaction& transaction, const PendingSave& save,
                                         const EncodedStep::State& step, std::string_view context) {
  const ContextEntry& record = *save.record;
  if (save.is_new) {
    SW_CHECK_OK(put_next_owner(transaction, options.contexts_table, next_owner));
    SW_CHECK_OK(put_context(transaction, options.contexts_table, context, record));
  }
  for (const auto& [id, bytes] : step.packs) {
    SW_CHECK_OK(transaction.put(options.packs_table, pack_key(record.family, id), bytes));
  }
  SW_CHECK_OK(write(transaction, record, save.addition));
  return apply(transaction, record.family, save.garbage);
}

Result<SaveStats> SnapshotStore::save(LiveMemory& live, EncodedStep encoded,
                                      const ExtraWrites& extra_writes, const Commit& commit) {
  State& s = *state_;
  LiveMemory::State& memory = live.state();
  EncodedStep::State& step = encoded.state();
  SW_CHECK_OK(s.refresh());
  State::PendingSave save;
  SW_CHECK_OK(s.prepare(save, memory, step));
  SaveStats stats = step.stats;
  for (const CollectionStep::Change& change : save.garbage.changes)
    stats.bytes_written += change.bytes ? change.bytes->size() : 0;
  const storage::TransactionBody body = [&](storage::Transaction& transaction) -> Result<void> {
    SW_CHECK_OK(s.write(transaction, save, step, memory.context));
    return extra_writes ? extra_writes(transaction) : Result<void>();
  };
  SW_CHECK_OK(s.noting(commit ? commit(stats, body) : s.storage.transact(body)));
  if (save.is_new)
    save.record = &s.contexts.emplace(memory.context, std::move(save.fresh)).first->second;
  for (const auto& [id, count] : step.entry_counts) s.entry_counts[id] = count;
  s.note_committed(*save.record, save.addition,
                   {.packs = step.packs.size(), .bytes = step.stats.bytes_written});
  s.note_applied(s.families[save.record->family], save.garbage);
  remember(memory, std::move(step));
  return stats;
}

Result<VersionInfo> SnapshotStore::latest(std::string_view context) {
  SW_TRY(const ContextEntry* const record, state_->find(context));
  SW_TRY(const Version version, state_->version_of(*record, record->newest.id));
  return info_of(record->newest, version);
}

Result<VersionInfo> SnapshotStore::version(std::string_view context, VersionId version) {
  SW_TRY(ContextEntry* const record, state_->find(context));
  SW_TRY(const KeptVersion kept, state_->kept_of(*record, version));
  SW_TRY(const Version found, state_->version_of(*record, version));
  return info_of(kept, found);
}

Result<Restored> SnapshotStore::restore(std::string_view context, VersionId version,
                                        std::string_view build, BytesView image, PageSink& memory,
                                        const LeaveOut& leave_out) {
  SW_TRY(ContextEntry* const record, state_->find(context));
  SW_TRY(const KeptVersion kept, state_->kept_of(*record, version));
  std::shared_ptr<LiveMemory::State> live;
  Bytes host_tables;
  std::uint64_t pages_written = 0;
  std::uint64_t packs_read = 0;
  SW_CHECK_OK(state_->storage.read([&](storage::Reader& reader) -> Result<void> {
    live = state_->new_memory(context, build);
    PackReader packs = state_->reader_of(reader, record->family);
    SW_TRY(const auto pack, packs.pack(version));
    if (!pack->version) return not_found("version", to_string(version));
    const Version& stored = *pack->version;
    if (stored.build != build) {
      return invalid(
          fmt::format("version {} was made by build {}", to_string(version), stored.build));
    }
    if (stored.memory_bytes != memory.memory_bytes()) {
      return invalid(fmt::format("version {} has a memory of {} bytes", to_string(version),
                                 stored.memory_bytes));
    }
    Restorer restorer(packs, image, memory, *live);
    SW_CHECK_OK(restorer.restore(stored, version.sequence, leave_out));
    SW_TRY(const auto tables, packs.pack(stored.host_tables));
    if (!tables->host_tables) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("snapshot pack {}: no host tables", to_string(tables->id))};
    }
    host_tables = *tables->host_tables;
    live->host_tables_pack = stored.host_tables;
    live->key_sequence = stored.key_sequence;
    pages_written = restorer.pages_written();
    packs_read = packs.packs_read();
    return {};
  }));
  live->host_tables = host_tables;
  live->memory_bytes = memory.memory_bytes();
  live->owner = record->owner;
  live->based_on = version;
  live->step = kept.step;
  live->family = record->family;
  PageLoader load = live->unread_pages == 0 ? PageLoader() : state_->loader_of(live, image);
  return Restored{LiveMemory(std::move(live)), std::move(host_tables), std::move(load),
                  pages_written, packs_read};
}

Result<void> SnapshotStore::remove(std::string_view context, const ExtraWrites& extra_writes) {
  State& s = *state_;
  SW_CHECK_OK(s.refresh());
  const auto found = s.contexts.find(context);
  if (found == s.contexts.end()) return not_found("context", context);
  const std::uint32_t family = found->second.family;
  const bool alone = std::ranges::none_of(s.contexts, [&](const auto& other) {
    return other.second.family == family && other.first != context;
  });
  // Without relatives they go with the packs.
  std::vector<std::pair<KeptVersion, std::string>> rows;
  if (!alone) {
    SW_TRY(rows, s.read_rows(found->second));
  }
  SW_CHECK_OK(s.commit([&](storage::Transaction& transaction) -> Result<void> {
    SW_CHECK_OK(erase_context(transaction, s.options.contexts_table, context));
    for (const auto& [version, about] : rows) {
      SW_CHECK_OK(transaction.erase(s.options.packs_table,
                                    version_key(family, found->second.owner, version.id.sequence)));
    }
    if (alone) {
      SW_CHECK_OK(transaction.erase_range(
          storage::Range::of_prefix(s.options.packs_table, family_prefix(family))));
    }
    return extra_writes ? extra_writes(transaction) : Result<void>();
  }));
  s.forget_unread(context);
  s.contexts.erase(found);
  if (alone) {
    s.families.erase(family);
    return {};
  }
  // Relatives need some of its packs. Nothing else of it may stay.
  auto wiped = s.collect_family(family, {.prune_bytes_min = 0, .prune_below = 1.0});
  if (wiped.ok()) return {};
  return std::move(wiped).error().while_doing(
      "the context is removed, but some of its data remains");
}

Result<void> SnapshotStore::collect() {
  SW_CHECK_OK(state_->refresh());
  std::vector<std::uint32_t> families;
  for (const auto& [name, record] : state_->contexts) families.push_back(record.family);
  std::sort(families.begin(), families.end());
  families.erase(std::unique(families.begin(), families.end()), families.end());
  for (const std::uint32_t family : families) SW_CHECK_OK(state_->collect_family(family, {}));
  return {};
}

Result<StorageUsage> SnapshotStore::usage(std::string_view context) {
  SW_TRY(ContextEntry* const record, state_->find(context));
  SW_CHECK_OK(state_->load_usage(*record));
  return *record->usage;
}

Result<StoreStats> SnapshotStore::stats() {
  StoreStats stats;
  stats.collections = state_->collections;
  stats.damage =
      state_->collection_error.empty() ? state_->history_error : state_->collection_error;
  SW_TRY(const StorageUsage usage, state_->usage_of({}));
  stats.packs = usage.packs;
  stats.pack_bytes = usage.bytes;
  return stats;
}

}  // namespace sw::snapshot
