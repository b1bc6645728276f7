// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// An Interpreter: the code contexts of one language in one sandbox, a mirror of the sandbox's
// files, and the rules. After each run that can be saved, the context's memory and its row are
// stored in one transaction; before a run, the memory is there already (live), comes from storage
// (restored), or is the image's (fresh), and the answer says which.
//
//   how the run ended                                     instance kept   memory saved   files
//   completed, exit, error of the code, soft stop         yes             yes            as the run
//   left them
//   any of these, with state that cannot be saved         yes             no: stale      as the run
//   left them
//   trap, _exit, stopped by force, fault of the engine    no              no: stale      put back
//
// A soft stop is one at a limit, or by the caller, after which the instance can go on. Stale: the
// saved memory is that of an earlier run, and who restores it goes on from there.
//
// Files and memory move together: whatever keeps the memory of a run keeps its files, and whatever
// throws the memory away puts the files back. Two values of runtime::AfterError change what follows
// an error: with kRollback the instance is dropped, the files are put back and the saved memory
// stands, so nothing is stale; with kFilesBack the files are put back under the memory, which is
// kept and saved.

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "interpreter/contexts.h"
#include "interpreter/tenant.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/engine.h"
#include "sandbox_workers/interpreter/residency_pool.h"
#include "sandbox_workers/runtime/worker.h"
#include "sandbox_workers/workspace/workspace.h"

namespace sw::interpreter {

struct ServerOptions {
  ContextsOptions contexts = {};
  wasi::TreeLimits workspace_limits = kWorkspaceLimits;  ///< unless a manifest brings others
};

/// Threads: one at a time.
class InterpreterServer final : public runtime::Interpreter {
 public:
  /// `storage` belongs to this Interpreter alone; it and `clock` outlive it.
  static Result<std::unique_ptr<InterpreterServer>> open(std::shared_ptr<engine::Engine> engine,
                                                         storage::ObjectStorage& storage,
                                                         std::shared_ptr<ResidencyPool> pool,
                                                         object::Clock& clock,
                                                         const ServerOptions& options);

  Result<runtime::ContextInfo> create(std::string_view id, std::string_view cwd) override;
  Result<std::vector<runtime::ContextInfo>> contexts() override;
  Result<runtime::ContextInfo> context(std::string_view id) override;
  Result<void> remove(std::string_view id) override;
  Result<void> destroy() override;

  /// Within Engine::on_guest_thread.
  Result<runtime::ExecuteResponse> execute(runtime::ExecuteArgs args,
                                           const runtime::GetFiles& get_files,
                                           RunEvents& output) override;

  Result<runtime::ContextInfo> fork(std::string_view id, std::string_view new_id) override;
  Result<runtime::ContextInfo> undo(std::string_view id, std::uint32_t runs) override;
  Result<runtime::Checkpoint> add_checkpoint(std::string_view id, std::string_view name) override;
  Result<std::vector<runtime::Checkpoint>> checkpoints(std::string_view id) override;
  Result<void> remove_checkpoint(std::string_view id, std::string_view name) override;
  Result<runtime::ContextInfo> restore_checkpoint(std::string_view id,
                                                  std::string_view name) override;

  /// The alarm has gone off: deletes everything if nobody used it for the time to live.
  Result<object::IdleVerdict> on_alarm();

  std::int64_t now_ms() { return contexts_->now_ms(); }

 private:
  struct Run;

  InterpreterServer(std::shared_ptr<engine::Engine> engine, std::shared_ptr<ResidencyPool> pool,
                    const ServerOptions& options, std::unique_ptr<Contexts> contexts);

  Result<void> find_row(Run& run);
  Result<void> agree_on_count(Run& run);
  Result<void> reconcile(Run& run);
  Result<void> ensure_instance(Run& run);
  Result<void> boot(Run& run, std::string note);
  Result<void> restore(Run& run, const snapshot::VersionInfo& version);
  void execute(Run& run);
  void conclude(Run& run);
  std::string folder_told(const std::string& reported) const;
  void roll_back(Run& run);
  void put_files_back(Run& run);
  Result<void> store(Run& run);
  Result<void> save(Run& run);
  Result<runtime::ExecuteResponse> answer(Run& run);
  Result<runtime::ContextInfo> info_of(std::string_view id, const ContextRow& row);
  /// The memory that an instance holds is not the context's any more.
  Result<runtime::ContextInfo> rewound(std::string_view id, const Result<ContextRow>& row);
  Result<void> destroy_all();

  std::shared_ptr<engine::Engine> engine_;  // shared with other Interpreters of the language
  const ServerOptions options_;
  std::unique_ptr<Contexts> contexts_;
  std::shared_ptr<Workspace> mirror_;  // shared with the instances
  Tenant tenant_;                      // last: instances go before what they use
};

}  // namespace sw::interpreter
