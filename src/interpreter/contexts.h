// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What an Interpreter keeps in its object of the storage: a row of its own, a row and the saved
// memories of each context, and when all of it expires. Knows nothing of guests.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "interpreter/context_row.h"
#include "object/clock.h"
#include "object/idle_alarm.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/protocol/protocol.h"
#include "snapshot/snapshot_store.h"
#include "storage/storage.h"

namespace sw::interpreter {

struct ContextsOptions {
  std::size_t contexts_max = 8;
  /// Without use for so long, everything is deleted; zero: never.
  std::chrono::milliseconds idle_ttl = object::kDefaultIdleTtl;
  snapshot::Options snapshots = {};
};

/// Threads: one at a time.
/// Errors of all: kInvalidArgument and kLimitExceeded for what a caller must not ask (the message
/// says why), kContextNotFound, kNotFound for a checkpoint or step that is not there; else those of
/// the storage, and kCorrupt.
class Contexts {
 public:
  using Rows = std::vector<std::pair<std::string, ContextRow>>;

  /// How the rows of an object came to look as they do.
  static storage::Schema schema();
  /// All that it has.
  static std::vector<storage::TableId> tables();
  /// `storage` and `clock` outlive it.
  static Result<std::unique_ptr<Contexts>> open(storage::ObjectStorage& storage,
                                                object::Clock& clock,
                                                const ContextsOptions& options);

  /// Writes the Interpreter's own row if there is none.
  Result<void> ensure_metadata();

  /// Errors: kContextNotFound.
  Result<ContextRow> existing(std::string_view id);
  Result<Rows> list();
  Result<ContextRow> create(std::string_view id, std::string_view cwd);
  Result<void> remove(std::string_view id);
  /// Everything, as if it had never been.
  Result<void> destroy();

  // --- runs

  bool has_memory(std::string_view id) const { return snapshots_->has(id); }
  Result<snapshot::VersionInfo> newest(std::string_view id) { return snapshots_->latest(id); }
  snapshot::SnapshotStore& snapshots() { return *snapshots_; }

  /// Stores a memory and the row of the run that left it, which it completes.
  Result<snapshot::SaveStats> save(snapshot::LiveMemory& live, snapshot::EncodedStep step,
                                   std::string_view id, ContextRow& row,
                                   const snapshot::Commit& commit);
  /// The row of a run whose memory is not stored.
  Result<void> write(std::string_view id, const ContextRow& row, const snapshot::Commit& commit);
  storage::ObjectStorage& storage() { return storage_; }
  /// Takes the last run back, with its memory. True if memory and row are now those of the run
  /// before.
  Result<bool> take_back(std::string_view id, ContextRow& row);

  // --- versions

  /// Oldest first.
  Result<std::vector<protocol::HistoryEntry>> history(std::string_view id);
  /// All but the current step and checkpoints, and what only they need.
  Result<void> forget_history(std::string_view id);
  /// Runs a body in a transaction, which leaves a context with that row and that memory, if any.
  using Commit =
      std::function<Result<void>(const ContextRow& row, const snapshot::VersionInfo* version,
                                 const storage::TransactionBody&)>;
  Result<ContextRow> fork(std::string_view id, std::string_view new_id, const ContextVersion& from,
                          const Commit& commit = {});
  /// Goes back to a version; can be undone.
  Result<ContextRow> restore(std::string_view id, const ContextVersion& version,
                             const Commit& commit = {});
  /// Takes back what the last `runs` saved runs did to memory. They stay counted.
  Result<ContextRow> undo(std::string_view id, std::uint32_t runs, const Commit& commit = {});
  Result<snapshot::CheckpointInfo> add_checkpoint(std::string_view id, std::string_view name);
  Result<std::vector<snapshot::CheckpointInfo>> checkpoints(std::string_view id);
  Result<void> remove_checkpoint(std::string_view id, std::string_view name);

  /// What is stored of a context's memory.
  Result<std::optional<protocol::SnapshotInfo>> snapshot_info(std::string_view id,
                                                              const ContextRow& row);
  /// The same of a version that is about to be the newest.
  Result<protocol::SnapshotInfo> snapshot_info(std::string_view id, const ContextRow& row,
                                               const snapshot::VersionInfo& version);
  /// The same of a memory that is about to be saved.
  Result<protocol::SnapshotInfo> snapshot_info(const snapshot::LiveMemory& live,
                                               const snapshot::SaveStats& saved);

  /// Counts as use.
  Result<void> touch();
  /// The alarm has gone off.
  Result<object::IdleVerdict> alarm();

  std::int64_t now_ms() { return clock_.now().time_since_epoch().count(); }
  std::uint64_t now_ns() { return static_cast<std::uint64_t>(now_ms()) * 1'000'000; }

 private:
  Contexts(storage::ObjectStorage& storage, object::Clock& clock, const ContextsOptions& options);

  /// Runs `body` in a transaction that counts as use.
  Result<void> use(const snapshot::ExtraWrites& body);
  /// What the snapshot store's transactions write along: `body`, and that there was use.
  snapshot::ExtraWrites used(snapshot::ExtraWrites body = {});
  Result<void> touch(storage::Transaction& transaction);
  static snapshot::ExtraWrites writer_of(std::string_view id, const ContextRow& row);
  /// May there be a new context of this name?
  Result<void> check_new(std::string_view id);
  Result<std::optional<ContextRow>> find(std::string_view id);
  Result<ContextRow> with_memory(std::string_view id);
  Result<snapshot::CheckpointInfo> checkpoint(std::string_view id, std::string_view name);
  /// Of a context with a memory.
  Result<snapshot::VersionInfo> version(std::string_view id, const ContextVersion& version);
  ContextRow rewound(ContextRow row);
  /// Says of which row a version is committed.
  static snapshot::CommitVersion with_row(const ContextRow& row, const Commit& commit);

  storage::ObjectStorage& storage_;
  object::Clock& clock_;
  const ContextsOptions options_;
  std::unique_ptr<snapshot::SnapshotStore> snapshots_;
  bool has_metadata_ = false;
};

}  // namespace sw::interpreter
