// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// An Interpreter: the code contexts of one language in one sandbox, and the rules. After each run that
// can be saved, the context's memory and its row are stored in one transaction; before a run, the
// memory is there already (live), comes from storage (restored), or is the image's (fresh), and the
// outcome says which.
//
//   how the run ended                                     instance  memory     files
//   completed, exit, error of the code, soft stop         kept      saved      as the run left them
//   any of these, with state that cannot be saved         kept      stale      as the run left them
//   trap, _exit, stopped by force, fault of the engine    dropped   stale      put back
//
// A soft stop is one at a limit, or by the caller, after which the instance can go on. Stale: the
// saved memory is that of an earlier run, and who restores it goes on from there.
//
// Files and memory move together: whatever keeps the memory of a run keeps its files, and whatever
// throws the memory away puts the files back. Two values of AfterError change what follows an error:
// with kRollback the instance is dropped, the files are put back and the saved memory stands, so
// nothing is stale; with kFilesBack the files are put back under the memory, which is kept and saved.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/thread_safety.h"
#include "interpreter/contexts.h"
#include "interpreter/residency_pool.h"
#include "object/object.h"
#include "object/turns.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/engine.h"
#include "sandbox_workers/protocol/worker.h"

namespace sw::interpreter {

/// Did a run end in a way that AfterError is about?
bool is_error(Ending ending);

/// Calls for one context happen one at a time; those for several go on side by side. Questions about
/// contexts never wait for a run.
/// Threads: any; `execute` needs a guest's stack if the engine does.
class Interpreter final : public protocol::Interpreter, public object::Object {
 public:
  /// `storage` belongs to this Interpreter alone; it, `pool` and `clock` outlive it.
  static Result<std::unique_ptr<Interpreter>> open(std::shared_ptr<engine::Engine> engine,
                                                   storage::ObjectStorage& storage,
                                                   ResidencyPool& pool, object::Clock& clock,
                                                   const ContextsOptions& options);
  ~Interpreter() override;

  Result<protocol::ContextInfo> create(std::string_view id, std::string_view cwd) override;
  Result<std::vector<protocol::ContextInfo>> contexts() override;
  Result<protocol::ContextInfo> context(std::string_view id) override;
  Result<void> remove(std::string_view id) override;
  Result<void> destroy() override;

  Result<protocol::ExecuteResponse> execute(protocol::ExecuteArgs args, RunEvents& events) override;

  Result<std::vector<protocol::HistoryEntry>> history(std::string_view id) override;
  Result<void> forget_history(std::string_view id) override;
  Result<protocol::ContextInfo> fork(std::string_view id, std::string_view new_id,
                                     const ContextVersion& from,
                                     protocol::JointChange* joint = nullptr) override;
  Result<protocol::ContextInfo> restore(std::string_view id, const ContextVersion& version,
                                        protocol::JointChange* joint = nullptr) override;
  Result<protocol::ContextInfo> undo(std::string_view id, std::uint32_t runs,
                                     protocol::JointChange* joint = nullptr) override;
  Result<protocol::Checkpoint> add_checkpoint(std::string_view id, std::string_view name) override;
  Result<std::vector<protocol::Checkpoint>> checkpoints(std::string_view id) override;
  Result<void> remove_checkpoint(std::string_view id, std::string_view name) override;

  /// Deletes everything if nobody used it for the time to live.
  Result<void> on_alarm(object::Time scheduled) override;

 private:
  struct Execution;
  using Change = std::function<Result<ContextRow>(Contexts&, const Contexts::Commit&)>;

  Interpreter(std::shared_ptr<engine::Engine> engine, ResidencyPool& pool,
              std::unique_ptr<Contexts> contexts);

  Result<void> check(const sw::Run& run) const;
  Result<void> prepare(Execution& run) SW_REQUIRES(mutex_);
  Result<void> agree_on_count(Execution& run) SW_REQUIRES(mutex_);
  Result<void> ensure_session(Execution& run) SW_EXCLUDES(mutex_);
  Result<void> boot(Execution& run, std::string_view note) SW_EXCLUDES(mutex_);
  Result<void> restore(Execution& run, const snapshot::VersionInfo& version) SW_EXCLUDES(mutex_);
  Result<void> execute(Execution& run) SW_EXCLUDES(mutex_);
  Result<protocol::ExecuteResponse> conclude(Execution& run) SW_REQUIRES(mutex_);
  static protocol::ExecuteResponse conclude_end(Execution& run);
  void decide(Execution& run) SW_REQUIRES(mutex_);
  void roll_back(Execution& run) SW_REQUIRES(mutex_);
  Result<void> store(Execution& run) SW_REQUIRES(mutex_);
  Result<void> save(Execution& run) SW_REQUIRES(mutex_);
  static Result<snapshot::EncodedStep> encode(Execution& run);
  Result<void> write(Execution& run) SW_REQUIRES(mutex_);
  Result<void> commit(Execution& run, const storage::TransactionBody& body) SW_REQUIRES(mutex_);
  Result<protocol::ContextInfo> info_of(std::string_view id, const ContextRow& row)
      SW_REQUIRES(mutex_);
  /// Without what is said of its memory.
  protocol::ContextInfo row_info(std::string_view id, const ContextRow& row) SW_REQUIRES(mutex_);
  /// Changes a context's memory, or makes one: `changed`, which has no instance that fits it.
  Result<protocol::ContextInfo> change(std::string_view id, std::string_view changed,
                                       const Change& operation, protocol::JointChange* joint)
      SW_EXCLUDES(mutex_);
  Result<void> commit(protocol::JointChange* joint, protocol::ContextInfo changed,
                      const snapshot::VersionInfo* version, const ContextRow& row,
                      const storage::TransactionBody& body) SW_REQUIRES(mutex_);
  Result<void> destroy_all() SW_REQUIRES(mutex_);

  const std::shared_ptr<engine::Engine> engine_;  // shared with other Interpreters of the language
  ResidencyPool& pool_;                           // this object is the owner of its residents there

  Mutex mutex_;
  object::Turns turns_ SW_GUARDED_BY(mutex_);                          // of contexts
  const std::unique_ptr<Contexts> contexts_ SW_PT_GUARDED_BY(mutex_);  // all use of the storage
};

}  // namespace sw::interpreter
