// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/store_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "snapshot/restorer.h"

namespace sw::snapshot {

Error invalid(std::string message) {
  return Error{ErrorCode::kInvalidArgument, std::move(message)};
}

ContextEntry new_entry(std::uint32_t owner, std::uint32_t family, std::uint32_t next_sequence) {
  ContextEntry entry;
  entry.owner = owner;
  entry.family = family;
  entry.next_sequence = next_sequence;
  return entry;
}

namespace {

/// What a memory keeps of the packs that its late pages are in.
constexpr std::size_t kLoaderPacksBytesMax = std::size_t{2} << 20U;

}  // namespace

Error not_found(std::string_view what, std::string_view name) {
  return Error{ErrorCode::kNotFound, fmt::format("no {} \"{}\"", what, name)};
}

VersionInfo info_of(const KeptVersion& kept, const Version& version) {
  return {kept.id, version.build, version.memory_bytes, version.pages, version.time_ms, kept.step};
}

PackReader SnapshotStore::State::reader_of(storage::Reader& reader, std::uint32_t family) {
  return {reader, options.packs_table, family, compression};
}

std::shared_ptr<LiveMemory::State> SnapshotStore::State::new_memory(std::string_view context,
                                                                    std::string_view build) {
  auto live = std::make_shared<LiveMemory::State>(std::string(context), std::string(build),
                                                  options.recent_bytes_max);
  live->key_interval = key_interval(options.history);
  live->compressions = compressions;
  return live;
}

PageLoader SnapshotStore::State::loader_of(const std::shared_ptr<LiveMemory::State>& live,
                                           BytesView image) {
  partly_read.emplace_back(live);
  auto kept = std::make_shared<PackCache>(kLoaderPacksBytesMax);
  return [this, live, image, kept](std::uint32_t page, PageSink& memory) {
    return storage.read([&](storage::Reader& reader) {
      PackReader packs(reader, options.packs_table, live->family, compression, kept.get());
      return Restorer(packs, image, memory, *live).load(page);
    });
  };
}

void SnapshotStore::State::forget_unread(std::string_view context) {
  std::erase_if(partly_read, [&](const auto& memory) {
    const auto live = memory.lock();
    return !live || live->context == context;
  });
}

Result<ContextEntry*> SnapshotStore::State::find(std::string_view name) {
  SW_CHECK_OK(refresh());
  const auto found = contexts.find(name);
  if (found == contexts.end()) return not_found("context", name);
  SW_CHECK_OK(find_newest(found->second));
  return &found->second;
}

Result<void> SnapshotStore::State::find_newest(ContextEntry& record) {
  if (record.newest.id) return {};
  const std::string prefix = owner_prefix(record.family, record.owner);
  KeptVersion newest;
  SW_CHECK_OK(storage.read([&](storage::Reader& reader) -> Result<void> {
    newest = {};
    SW_CHECK_OK(reader.scan_keys(storage::Range::of_prefix(options.packs_table, prefix),
                                 storage::Order::kDescending,
                                 [&](std::string_view key, std::size_t) -> Result<storage::Scan> {
                                   const auto id = pack_of_key(key);
                                   if (!id) return storage::Scan::kContinue;
                                   newest.id = *id;
                                   return storage::Scan::kStop;
                                 }));
    const std::string key = version_key(record.family, record.owner, newest.id.sequence);
    SW_TRY(const auto row, reader.get(options.packs_table, key));
    // A damaged row is told by those who ask for the history.
    const auto known = row ? decode_version_row(key, *row) : Error{};
    if (known.ok() && known->first.id == newest.id) newest = known->first;
    return {};
  }));
  if (!newest.id) return Error{ErrorCode::kCorrupt, "a context has no snapshot pack"};
  SW_CHECK_OK(version_of(record, newest.id));
  record.newest = newest;
  record.next_sequence = newest.id.sequence + 1;
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

Result<std::vector<std::pair<KeptVersion, std::string>>> SnapshotStore::State::read_rows(
    const ContextEntry& record) {
  std::vector<std::pair<KeptVersion, std::string>> rows;
  SW_CHECK_OK(storage.read([&](storage::Reader& reader) -> Result<void> {
    rows.clear();
    std::vector<std::string> keys;
    SW_CHECK_OK(reader.scan_keys(
        storage::Range::of_prefix(options.packs_table, owner_prefix(record.family, record.owner)),
        storage::Order::kAscending,
        [&](std::string_view key, std::size_t) -> Result<storage::Scan> {
          if (version_of_key(key)) keys.emplace_back(key);
          return storage::Scan::kContinue;
        }));
    for (const std::string& key : keys) {
      SW_TRY(const auto row, reader.get(options.packs_table, key));
      auto decoded = decode_version_row(key, row.value_or(Bytes()));
      if (decoded.ok()) {
        rows.push_back(*std::move(decoded));
        continue;
      }
      // Nothing is known of it but where it is, so its pack is kept.
      history_error = decoded.error().message;
      rows.emplace_back(KeptVersion{.id = *version_of_key(key)}, "");
    }
    return {};
  }));
  if (rows.empty() || rows.back().first.id != record.newest.id)
    rows.emplace_back(record.newest, "");
  return rows;
}

Result<void> SnapshotStore::State::load_kept(ContextEntry& record) {
  if (!record.kept) {
    SW_TRY(const auto rows, read_rows(record));
    std::vector<KeptVersion>& read = record.kept.emplace();
    for (const auto& [version, about] : rows) read.push_back(version);
  }
  std::set<VersionId> pinned = {record.newest.id, record.newest.parent};
  for (const CheckpointInfo& checkpoint : record.checkpoints) pinned.insert(checkpoint.version);
  const auto surplus_at = surplus(*record.kept, pinned, options.history);
  if (surplus_at.empty()) return {};
  std::vector<KeptVersion> kept;
  for (std::size_t i = 0; i < record.kept->size(); ++i) {
    const KeptVersion& version = (*record.kept)[i];
    if (std::ranges::binary_search(surplus_at, i)) record.leaving.push_back(version.id);
    else kept.push_back(version);
  }
  record.kept = std::move(kept);
  return {};
}

Result<std::vector<std::pair<KeptVersion, std::string>>> SnapshotStore::State::read_history(
    ContextEntry& record) {
  SW_CHECK_OK(load_kept(record));
  SW_TRY(auto rows, read_rows(record));
  const std::set<VersionId> leaving(record.leaving.begin(), record.leaving.end());
  std::erase_if(rows, [&](const auto& row) { return leaving.contains(row.first.id); });
  return rows;
}

Result<KeptVersion> SnapshotStore::State::kept_of(ContextEntry& record, VersionId id) {
  if (id == record.newest.id) return record.newest;
  SW_CHECK_OK(load_kept(record));
  const auto found = std::ranges::find(*record.kept, id, &KeptVersion::id);
  if (found != record.kept->end()) return *found;
  if (is_checkpoint(record, id)) return KeptVersion{.id = id};
  return not_found("version", to_string(id));
}

bool SnapshotStore::State::is_checkpoint(const ContextEntry& record, VersionId id) {
  return std::ranges::find(record.checkpoints, id, &CheckpointInfo::version) !=
         record.checkpoints.end();
}

Result<std::string> SnapshotStore::State::about_of(const ContextEntry& record, VersionId id) {
  std::string about;
  SW_CHECK_OK(storage.read([&](storage::Reader& reader) -> Result<void> {
    const std::string key = version_key(record.family, record.owner, id.sequence);
    SW_TRY(const auto row, reader.get(options.packs_table, key));
    if (!row) return {};
    SW_TRY(auto decoded, decode_version_row(key, *row));
    about = std::move(decoded.second);
    return {};
  }));
  return about;
}

Result<StorageUsage> SnapshotStore::State::usage_of(const std::string& prefix) {
  StorageUsage usage;
  SW_CHECK_OK(storage.read([&](storage::Reader& reader) {
    usage = {};
    return reader.scan_keys(
        storage::Range::of_prefix(options.packs_table, prefix), storage::Order::kAscending,
        [&](std::string_view key, std::size_t value_bytes) -> Result<storage::Scan> {
          if (!pack_of_key(key)) return storage::Scan::kContinue;
          ++usage.packs;
          usage.bytes += value_bytes;
          return storage::Scan::kContinue;
        });
  }));
  return usage;
}

Result<void> SnapshotStore::State::load_usage(ContextEntry& record) {
  if (record.usage) return {};
  SW_TRY(record.usage, usage_of(owner_prefix(record.family, record.owner)));
  return {};
}

// --- commits

Result<void> SnapshotStore::State::commit(
    const std::function<Result<void>(storage::Transaction&)>& body) {
  return noting(storage.transact(body));
}

Result<void> SnapshotStore::State::noting(Result<void> committed) {
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
  // Memories that were not saved yet may have been given some.
  next_owner = std::max(next_owner, catalog.next_owner);
  families.clear();
  entry_counts.clear();
  stale = false;
  return {};
}

Result<void> SnapshotStore::State::write(storage::Transaction& transaction,
                                         const ContextEntry& record,
                                         const Addition& addition) const {
  const std::string key = version_key(record.family, record.owner, addition.version.id.sequence);
  SW_CHECK_OK(transaction.put(options.packs_table, key,
                              encode_version_row(key, addition.version, addition.about)));
  if (!addition.forgotten) return {};
  return transaction.erase(options.packs_table,
                           version_key(record.family, record.owner, addition.forgotten->sequence));
}

void SnapshotStore::State::note_committed(ContextEntry& record, const Addition& addition,
                                          const Written& written) {
  record.newest = addition.version;
  record.next_sequence = addition.version.id.sequence + 1;
  if (record.kept) {
    std::erase_if(*record.kept, [&](const KeptVersion& v) { return v.id == addition.forgotten; });
    record.kept->push_back(addition.version);
  }
  if (record.usage) {
    record.usage->packs += written.packs;
    record.usage->bytes += written.bytes;
  }
  families[record.family].packs_written += written.packs;
}

Result<VersionInfo> SnapshotStore::State::append_version(ContextEntry& record, Version version,
                                                         Addition addition,
                                                         const ExtraWrites& extra_writes,
                                                         const CommitVersion& commit,
                                                         const ExtraWrites& before) {
  Pack pack{.id = {record.owner, record.next_sequence}};
  version.time_ms = addition.version.time_ms;
  pack.version = std::move(version);
  addition.version.id = pack.id;
  addition.version.copy = true;
  SW_TRY(const Bytes bytes, encode_pack(pack, compression));
  const VersionInfo info = info_of(addition.version, *pack.version);
  const storage::TransactionBody body = [&](storage::Transaction& transaction) -> Result<void> {
    if (before) SW_CHECK_OK(before(transaction));
    SW_CHECK_OK(transaction.put(options.packs_table, pack_key(record.family, pack.id), bytes));
    SW_CHECK_OK(write(transaction, record, addition));
    return extra_writes ? extra_writes(transaction) : Result<void>();
  };
  SW_CHECK_OK(noting(commit ? commit(info, body) : storage.transact(body)));
  entry_counts[pack.id] = 0;
  note_committed(record, addition, {.packs = 1, .bytes = bytes.size()});
  return info;
}

Result<VersionInfo> SnapshotStore::State::go_back(ContextEntry& record, const KeptVersion& target,
                                                  VersionId parent,
                                                  std::optional<VersionId> forgotten,
                                                  std::int64_t time_ms,
                                                  const ExtraWrites& extra_writes,
                                                  const CommitVersion& commit) {
  SW_TRY(Version version, version_of(record, target.id));
  Addition addition{.version = target, .forgotten = forgotten};
  SW_TRY(addition.about, about_of(record, target.id));
  addition.version.parent = parent;
  addition.version.time_ms = time_ms;
  return append_version(record, std::move(version), std::move(addition), extra_writes, commit);
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

}  // namespace sw::snapshot
