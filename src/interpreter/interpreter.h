// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The code contexts of one language in one sandbox. After each run that can be saved, the context's memory and its
// row are stored in one transaction; before a run, the memory is there already (live), comes from storage
// (restored), or is the image's (fresh), and the answer says which.
//
//   how the run ended               instance kept   memory saved   workspace
//   well                            yes             yes            as the run left it
//   error of the code, exit         yes             yes            put back
//   asked to stop, and it did       yes             no: stale      put back
//   trap, _exit, stopped by force   no              no: stale      put back
//
// Stale: the saved memory is that of an earlier run, and a later process goes on from there.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interpreter/context_row.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/engine.h"
#include "sandbox_workers/wasi/clocks.h"
#include "snapshot/snapshot_store.h"
#include "storage/storage.h"

namespace sw::interpreter {

struct Options {
  /// Where rows of contexts are; interpreters that share a storage have tables of their own (see also
  /// `snapshots`).
  storage::TableId contexts_table = 0x10;
  std::size_t contexts_max = 8;
  /// Memory of interpreters kept between runs, beyond what they share with the image; those used longest ago go
  /// first. Their state is stored, so going costs time, not data.
  std::uint64_t resident_bytes_max = std::uint64_t{1} << 30;
  snapshot::Options snapshots;
};

/// Whose memory a run began with.
enum class Origin : std::uint8_t { kLive, kRestored, kFresh };

struct ExecuteResult {
  engine::Outcome outcome;
  ContextRow row;  ///< after the run
  Origin origin = Origin::kFresh;
  /// Why the memory is fresh, or what is missing from the restored one; empty when there is nothing to say.
  std::string note;
  /// What was written, if the memory was saved.
  std::optional<snapshot::SaveStats> saved;
};

struct ContextInfo {
  std::string id;
  ContextRow row;
  bool resident = false;
};

/// The rows of the contexts in a table, by id, without opening an interpreter.
Result<std::vector<std::pair<std::string, ContextRow>>> read_contexts(storage::ObjectStorage& storage,
                                                                      storage::TableId table);

/// Threads: one at a time.
/// Errors: kNotFound for an unknown context, kInvalidArgument for a taken or impossible id and past contexts_max,
/// those of the storage.
class Interpreter {
 public:
  /// `storage` belongs to this interpreter alone and outlives it.
  static Result<std::unique_ptr<Interpreter>> open(std::shared_ptr<engine::Engine> engine,
                                                   storage::ObjectStorage& storage, const wasi::Clocks& clocks,
                                                   const Options& options);
  ~Interpreter();

  Result<void> create_context(std::string_view id, std::string_view cwd);
  Result<void> delete_context(std::string_view id);
  Result<std::vector<ContextInfo>> contexts();
  Result<ContextRow> context(std::string_view id);

  /// Runs one cell on the calling thread. An error of the code puts the workspace back.
  /// `also` is made once the run is over, and writes into the transaction that stores what the run did.
  Result<ExecuteResult> execute(std::string_view id, const engine::RunRequest& request,
                                const std::shared_ptr<Workspace>& workspace, wasi::OutputSink& output,
                                const std::function<snapshot::Also()>& also = {});

  /// A new context that goes on from where this one is saved. Costs the same whatever its size.
  Result<void> fork(std::string_view id, std::string_view new_id);
  /// Takes back the last `runs` saved runs' effects on memory (not on files).
  Result<void> undo(std::string_view id, std::uint32_t runs);
  Result<void> add_checkpoint(std::string_view id, std::string_view label);
  /// Goes back to a checkpoint; can be undone.
  Result<void> restore_checkpoint(std::string_view id, std::string_view label);
  Result<std::vector<snapshot::CheckpointInfo>> checkpoints(std::string_view id);
  Result<void> remove_checkpoint(std::string_view id, std::string_view label);

  /// Drops interpreters until those left take at most `bytes`.
  void evict_down_to(std::uint64_t bytes);

  /// Deletes every context and all that was stored.
  Result<void> destroy();

 private:
  struct Resident;

  Interpreter(std::shared_ptr<engine::Engine> engine, storage::ObjectStorage& storage, const wasi::Clocks& clocks,
              const Options& options);

  struct Found {
    Resident* resident = nullptr;
    Origin origin = Origin::kFresh;
    std::string note;
  };
  Result<Found> ensure_resident(const std::string& id, const ContextRow& row,
                                const std::shared_ptr<Workspace>& workspace);
  Result<Found> restore(const std::string& id, const ContextRow& row, const snapshot::VersionInfo& version,
                        const std::shared_ptr<Workspace>& workspace);
  Result<Found> boot(const std::string& id, const std::shared_ptr<Workspace>& workspace, std::string note);
  Result<std::optional<snapshot::SaveStats>> save(const std::string& id, Resident& resident, ContextRow& row,
                                                  const snapshot::Also& also);
  Result<void> write_row(std::string_view id, const ContextRow& row, const snapshot::Also& also = {});
  /// For operations that change what a context's next run finds: forgets its interpreter, marks the memory as
  /// saved.
  snapshot::Also rewound(const std::string& id, ContextRow row) const;
  std::int64_t now_ms() const;

  std::shared_ptr<engine::Engine> engine_;  // shared with other interpreters of the language
  storage::ObjectStorage& storage_;
  const wasi::Clocks& clocks_;
  const Options options_;
  std::unique_ptr<snapshot::SnapshotStore> snapshots_;
  std::vector<std::unique_ptr<Resident>> residents_;  // used last at the end
};

}  // namespace sw::interpreter
