// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// An Interpreter: the code contexts of one language in one sandbox, a mirror of the sandbox's files, and the
// rules. After each run that can be saved, the context's memory and its row are stored in one transaction; before
// a run, the memory is there already (live), comes from storage (restored), or is the image's (fresh), and the
// answer says which.
//
//   how the run ended                                     instance kept   memory saved   files
//   completed, exit, error of the code, soft stop         yes             yes            as the run left them
//   any of these, with state that cannot be saved         yes             no: stale      as the run left them
//   trap, _exit, stopped by force, fault of the engine    no              no: stale      put back
//
// A soft stop is one at a limit, or by the caller, after which the instance can go on. Stale: the saved memory is
// that of an earlier run, and who restores it goes on from there.
//
// Files and memory move together: whatever keeps the memory of a run keeps its files, and whatever throws the
// memory away puts the files back. Two values of runtime::AfterError change what follows an error: with kRollback
// the instance is dropped, the files are put back and the saved memory stands, so nothing is stale; with
// kFilesBack the files are put back under the memory, which is kept and saved.

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
#include "sandbox_workers/runtime/http.h"
#include "sandbox_workers/runtime/protocol.h"
#include "sandbox_workers/workspace/workspace.h"

namespace sw::interpreter {

struct ServerOptions {
  ContextsOptions contexts = {};
  wasi::TreeLimits workspace_limits = kWorkspaceLimits;  ///< unless a manifest brings others
};

/// Threads: one at a time.
class InterpreterServer {
 public:
  /// `storage` belongs to this Interpreter alone; it and `clock` outlive it.
  static Result<std::unique_ptr<InterpreterServer>> open(std::shared_ptr<engine::Engine> engine,
                                                         storage::ObjectStorage& storage,
                                                         std::shared_ptr<ResidencyPool> pool, object::Clock& clock,
                                                         const ServerOptions& options);

  /// Runs a cell. Within Engine::on_guest_thread. An Error is one that ends this Interpreter's life in memory: it
  /// is answered by what `error_body` makes of it. `cancel` ends the run, whatever the arguments say.
  runtime::Answer<runtime::ExecuteResponse> execute_in_context(const runtime::ExecuteArgs& args,
                                                               const runtime::GetFiles& get_files,
                                                               wasi::OutputSink& output,
                                                               const std::stop_token& cancel);

  /// The routes below /interpreters/KEY; the path begins with "/" after the key.
  runtime::Response fetch(const runtime::Request& request);

  /// The alarm has gone off: deletes everything if nobody used it for the time to live.
  Result<object::IdleVerdict> on_alarm();

 private:
  friend class Routes;
  struct Run;
  using Refusal = std::optional<runtime::ErrorBody>;

  InterpreterServer(std::shared_ptr<engine::Engine> engine, std::shared_ptr<ResidencyPool> pool,
                    const ServerOptions& options, std::unique_ptr<Contexts> contexts);

  Refusal find_row(Run& run);
  Refusal agree_on_count(Run& run);
  Refusal reconcile(Run& run);
  Refusal ensure_instance(Run& run);
  Refusal boot(Run& run, std::string note);
  Refusal restore(Run& run, const snapshot::VersionInfo& version);
  void execute(Run& run);
  void conclude(Run& run);
  void roll_back(Run& run);
  void put_files_back(Run& run);
  Refusal store(Run& run);
  Refusal save(Run& run);
  runtime::Answer<runtime::ExecuteResponse> answer(Run& run);
  Result<void> destroy();

  std::shared_ptr<engine::Engine> engine_;  // shared with other Interpreters of the language
  const ServerOptions options_;
  std::unique_ptr<Contexts> contexts_;
  std::shared_ptr<Workspace> mirror_;  // shared with the instances
  Tenant tenant_;                      // last: instances go before what they use
};

}  // namespace sw::interpreter
