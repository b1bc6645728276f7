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

namespace {

Error invalid(std::string message) {
  return Error{ErrorCode::kInvalidArgument, std::move(message)};
}

}  // namespace

// -------------------------------------------------------------------------------------------------
// LiveMemory

LiveMemory::LiveMemory(std::unique_ptr<LiveMemory::State> state) : state_(std::move(state)) {}
LiveMemory::LiveMemory(LiveMemory&&) noexcept = default;
LiveMemory& LiveMemory::operator=(LiveMemory&&) noexcept = default;
LiveMemory::~LiveMemory() = default;

const std::string& LiveMemory::context() const { return state_->context; }
const std::string& LiveMemory::build() const { return state_->build; }
std::optional<VersionId> LiveMemory::version() const {
  return state_->based_on ? std::optional(state_->based_on) : std::nullopt;
}
std::uint64_t LiveMemory::stored_pages() const { return state_->stored_pages; }
std::size_t LiveMemory::bookkeeping_bytes() const {
  return sizeof(LiveMemory::State) + state_->table.regions().size() * sizeof(Region) +
         state_->recent.bytes() + state_->host_tables.size();
}

// ------------------------------------------------------------------------------------------------
// Store

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
  auto live = std::make_unique<LiveMemory::State>(std::string(context), std::string(build),
                                                  state_->options.recent_bytes_max);
  if (has(context)) {
    SW_TRY(const ContextEntry* const record, state_->find(context));
    live->based_on = record->newest;
  }
  return LiveMemory(std::move(live));
}

Result<SaveStats> SnapshotStore::save(LiveMemory& live, const Step& step,
                                      const ExtraWrites& extra_writes) {
  State& s = *state_;
  LiveMemory::State& memory = live.state();
  SW_CHECK_OK(s.refresh());
  const bool is_new = !has(memory.context);
  ContextEntry fresh{.owner = s.next_owner,
                     .family = s.next_owner,
                     .checkpoints = {},
                     .newest = {},
                     .next_sequence = 1};
  ContextEntry* record = &fresh;
  Version version;
  if (!is_new) {
    SW_TRY(record, s.find(memory.context));
    version.previous = record->newest;
    version.history = std::min(record->history + 1, s.options.history_max);
  }
  if (memory.based_on != record->newest) {
    return invalid(fmt::format(
        "context \"{}\" has advanced past this memory: its newest version is {}, not {}",
        memory.context, to_string(record->newest), to_string(memory.based_on)));
  }
  SW_TRY(PreparedStep prepared, prepare_step(memory, step, {record->owner, record->next_sequence},
                                             version, s.compression));
  const CollectionStep garbage =
      is_new ? CollectionStep{} : s.collect_a_little(record->family, prepared.packs.size());

  SW_CHECK_OK(s.commit([&](storage::Transaction& transaction) -> Result<void> {
    if (is_new) {
      SW_CHECK_OK(put_next_owner(transaction, s.options.contexts_table, s.next_owner + 1));
      SW_CHECK_OK(put_context(transaction, s.options.contexts_table, memory.context, *record));
    }
    for (const auto& [id, bytes] : prepared.packs) {
      SW_CHECK_OK(transaction.put(s.options.packs_table, pack_key(record->family, id), bytes));
    }
    SW_CHECK_OK(s.apply(transaction, record->family, garbage));
    return extra_writes ? extra_writes(transaction) : Result<void>();
  }));
  if (is_new) {
    ++s.next_owner;
    record = &s.contexts.emplace(memory.context, std::move(fresh)).first->second;
  }
  for (const auto& [id, count] : prepared.entry_counts) s.entry_counts[id] = count;
  for (const auto& [id, bytes] : garbage.put) prepared.stats.bytes_written += bytes.size();
  s.note_committed(*record, prepared.stats.version, version.history, prepared.packs.size());
  s.note_applied(s.families[record->family], garbage);
  const SaveStats stats = prepared.stats;
  remember(memory, std::move(prepared), step);
  return stats;
}

Result<VersionInfo> SnapshotStore::latest(std::string_view context) {
  SW_TRY(const ContextEntry* const record, state_->find(context));
  SW_TRY(const Version version, state_->version_of(*record, record->newest));
  return info_of(record->newest, version);
}

Result<std::vector<VersionInfo>> SnapshotStore::versions(std::string_view context) {
  SW_TRY(const ContextEntry* const record, state_->find(context));
  return state_->history_of(*record);
}

Result<Restored> SnapshotStore::restore(std::string_view context, VersionId version,
                                        std::string_view build, BytesView image, PageSink& memory) {
  SW_TRY(const ContextEntry* const record, state_->find(context));
  SW_CHECK_OK(state_->check_kept(*record, version));
  std::unique_ptr<LiveMemory::State> live;
  Bytes host_tables;
  std::uint64_t pages_written = 0;
  std::uint64_t packs_read = 0;
  SW_CHECK_OK(state_->storage.read([&](storage::Reader& reader) -> Result<void> {
    live = std::make_unique<LiveMemory::State>(std::string(context), std::string(build),
                                               state_->options.recent_bytes_max);
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
    SW_CHECK_OK(restorer.restore(stored, version.sequence));
    SW_TRY(const auto tables, packs.pack(stored.host_tables));
    if (!tables->host_tables) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("snapshot pack {}: no host tables", to_string(tables->id))};
    }
    host_tables = *tables->host_tables;
    live->host_tables_pack = stored.host_tables;
    pages_written = restorer.pages_written();
    packs_read = packs.packs_read();
    return {};
  }));
  live->host_tables = host_tables;
  live->memory_bytes = memory.memory_bytes();
  live->based_on = version;
  return Restored{LiveMemory(std::move(live)), std::move(host_tables), pages_written, packs_read};
}

Result<VersionInfo> SnapshotStore::undo(std::string_view context, std::uint32_t runs,
                                        std::int64_t time_ms, const ExtraWrites& extra_writes) {
  SW_TRY(ContextEntry* const record, state_->find(context));
  SW_TRY(const auto versions, state_->history_of(*record, runs));
  if (versions.size() <= runs) {
    return invalid(
        fmt::format("cannot undo {} runs; at most {} are stored", runs, versions.front().history));
  }
  SW_TRY(Version version, state_->version_of(*record, versions.back().id));
  version.time_ms = time_ms;
  version.history = versions.back().history;
  return state_->append_version(*record, std::move(version), extra_writes);
}

Result<VersionInfo> SnapshotStore::rewind(std::string_view context, VersionId version,
                                          std::int64_t time_ms, const ExtraWrites& extra_writes) {
  SW_TRY(ContextEntry* const record, state_->find(context));
  SW_CHECK_OK(state_->check_kept(*record, version));
  SW_TRY(Version copy, state_->version_of(*record, version));
  copy.time_ms = time_ms;
  copy.previous = record->newest;
  copy.history = std::min(record->history + 1, state_->options.history_max);
  return state_->append_version(*record, std::move(copy), extra_writes);
}

Result<VersionInfo> SnapshotStore::fork(std::string_view context, std::optional<VersionId> version,
                                        std::string_view new_context, std::int64_t time_ms,
                                        const ExtraWrites& extra_writes) {
  State& s = *state_;
  SW_CHECK_OK(check_context_name(new_context));
  SW_CHECK_OK(s.refresh());
  if (has(new_context)) return invalid(fmt::format("context \"{}\" already exists", new_context));
  SW_TRY(const ContextEntry* const source, s.find(context));
  const VersionId from = version.value_or(source->newest);
  SW_TRY(const std::uint32_t history, s.check_kept(*source, from));
  SW_TRY(Version copy, s.version_of(*source, from));
  copy.time_ms = time_ms;
  copy.history = history;
  // Its sequence goes on where the source's is, since references lead to smaller numbers only.
  ContextEntry forked{.owner = s.next_owner,
                      .family = source->family,
                      .checkpoints = {},
                      .newest = {},
                      .next_sequence = source->next_sequence};
  SW_TRY(const VersionInfo info,
         s.append_version(
             forked, std::move(copy), extra_writes,
             [&](storage::Transaction& transaction) -> Result<void> {
               SW_CHECK_OK(put_next_owner(transaction, s.options.contexts_table, s.next_owner + 1));
               return put_context(transaction, s.options.contexts_table, new_context, forked);
             }));
  ++s.next_owner;
  s.contexts.emplace(new_context, std::move(forked));
  return info;
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
  SW_CHECK_OK(s.commit([&](storage::Transaction& transaction) -> Result<void> {
    SW_CHECK_OK(erase_context(transaction, s.options.contexts_table, context));
    if (alone) {
      SW_CHECK_OK(transaction.erase_range(
          storage::Range::of_prefix(s.options.packs_table, family_prefix(family))));
    }
    return extra_writes ? extra_writes(transaction) : Result<void>();
  }));
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

Result<VersionInfo> SnapshotStore::add_checkpoint(std::string_view context, std::string_view label,
                                                  std::int64_t time_ms,
                                                  const ExtraWrites& extra_writes) {
  if (label.empty() || label.size() > kLabelBytesMax) {
    return invalid(fmt::format("a checkpoint's label must have 1 to {} bytes", kLabelBytesMax));
  }
  SW_TRY(const ContextEntry* const record, state_->find(context));
  std::vector<CheckpointInfo> checkpoints = record->checkpoints;
  if (std::ranges::find(checkpoints, label, &CheckpointInfo::label) != checkpoints.end()) {
    return invalid(fmt::format("checkpoint \"{}\" already exists", label));
  }
  if (checkpoints.size() >= state_->options.checkpoints_max) {
    return Error{ErrorCode::kLimitExceeded, fmt::format("a context can have at most {} checkpoints",
                                                        state_->options.checkpoints_max)};
  }
  SW_TRY(const Version version, state_->version_of(*record, record->newest));
  checkpoints.push_back({std::string(label), record->newest, time_ms});
  SW_CHECK_OK(state_->change_checkpoints(context, std::move(checkpoints), extra_writes));
  return info_of(record->newest, version);
}

Result<std::vector<CheckpointInfo>> SnapshotStore::checkpoints(std::string_view context) const {
  SW_TRY(const ContextEntry* const record, state_->find(context));
  return record->checkpoints;
}

Result<void> SnapshotStore::remove_checkpoint(std::string_view context, std::string_view label,
                                              const ExtraWrites& extra_writes) {
  SW_TRY(const ContextEntry* const record, state_->find(context));
  std::vector<CheckpointInfo> checkpoints = record->checkpoints;
  if (std::erase_if(checkpoints, [&](const CheckpointInfo& c) { return c.label == label; }) == 0) {
    return not_found("checkpoint", label);
  }
  return state_->change_checkpoints(context, std::move(checkpoints), extra_writes);
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
  SW_TRY(const ContextEntry* const record, state_->find(context));
  return state_->usage_of(owner_prefix(record->family, record->owner));
}

Result<StoreStats> SnapshotStore::stats() {
  StoreStats stats;
  stats.collections = state_->collections;
  stats.collection_error = state_->collection_error;
  SW_TRY(const StorageUsage usage, state_->usage_of({}));
  stats.packs = usage.packs;
  stats.pack_bytes = usage.bytes;
  return stats;
}

}  // namespace sw::snapshot
