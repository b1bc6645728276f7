// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A sandbox: files under /workspace, environment variables, and code contexts in several languages
// that share them. The memory of the contexts is elsewhere: with the Interpreters behind the
// bindings' Workers, which have mirrors of the files. A run gets the files as they are when it begins,
// and the Sandbox takes back what it did to them; files and the context's record are then stored in one
// transaction. docs/sandbox.md tells all of it.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/thread_safety.h"
#include "executor/guest_pool.h"
#include "object/clock.h"
#include "object/idle_alarm.h"
#include "object/object.h"
#include "object/turns.h"
#include "sandbox/binding.h"
#include "sandbox/file_store.h"
#include "sandbox/records.h"
#include "sandbox/stored_sandbox.h"
#include "sandbox_workers/engine/run.h"
#include "sandbox_workers/protocol/http.h"
#include "sandbox_workers/protocol/profile.h"
#include "sandbox_workers/protocol/worker.h"
#include "sandbox_workers/workspace/workspace.h"
#include "storage/storage.h"

namespace sw::sandbox {

/// Time that exit handlers have when a context is deleted, and all of a sandbox's when it is destroyed.
inline constexpr std::chrono::seconds kExitHandlersWallMax{5};

/// For output that nobody reads.
class NoOutput final : public RunEvents {
 public:
  wasi::Errno write(wasi::Stream /*stream*/, BytesView /*bytes*/) override {
    return wasi::Errno::kSuccess;
  }
};

struct SandboxOptions {
  wasi::TreeLimits files = kWorkspaceLimits;  ///< for hosts and guests
  FileHistoryLimits file_history = {};
  bool file_api = true;  ///< false: no files at all, and guests are refused /workspace
  /// Unused for so long it is destroyed; 0: never.
  std::chrono::milliseconds idle_ttl = object::kDefaultIdleTtl;
  std::size_t contexts_max = 8;  ///< over all bindings
  /// Of code that comes as a request.
  std::size_t code_bytes_max = std::size_t{64} << 10;
  RunLimits run_limits;                         ///< of runs that come as requests
  bool home = false;                            ///< Run::home of every run
  Durability durability = Durability::kCommit;  ///< of runs whose sandbox and context do not say
  protocol::Profile profile = protocol::kStandardProfile;
};

/// What all sandboxes of a host have in common. It outlives them.
struct SandboxParts {
  protocol::Bindings bindings;
  object::Clock& clock;
  executor::GuestPool& guests;
  SandboxOptions options = {};
  /// Where all of them are kept, for copies of whole sandboxes; null: there are none.
  storage::Storage* storage = nullptr;
  /// The object of an Interpreter in the same storage, by its binding and key; absent: it is elsewhere.
  std::function<std::optional<TypedObject>(const std::string& binding, const std::string& key)>
      interpreter_object = {};
};

struct NewContext {
  std::string binding;
  std::optional<std::string> id = {};  ///< absent: a new UUID
  std::string cwd = "/workspace";
  Env env = {};
  std::optional<Durability> durability = {};  ///< of its runs; absent: the sandbox's
};

/// A run that has ended, and what is known beside its outcome.
struct Finished {
  Outcome outcome;
  std::string language;
  std::string engine;
  /// When the sandbox is destroyed if nobody uses it; absent: never.
  std::optional<std::int64_t> expires_at_ms = {};
};

struct Fork {
  ContextRecord context;
  VersionFiles files;
};

struct SandboxInfo {
  std::string id;
  SandboxRecord record;
  std::vector<ContextRecord> contexts;  ///< oldest first
  std::uint64_t files = 0;              ///< folders count
  std::uint64_t bytes = 0;
  bool file_api = true;
  std::optional<std::int64_t> expires_at_ms;
};

enum class FileUse : std::uint8_t { kLook, kChange };

/// Files and folders are there as soon as they are asked for; whatever happened before a crash is
/// either stored as a whole or has not happened. Errors are the protocol's (docs/sandbox.md). After a
/// failure of the storage everything is read again.
///
/// Runs of one context take turns (with the profile "compat" all runs of the sandbox do), those of
/// several go on side by side: a run sees the files as they were when it began, and what it changed
/// is applied path by path when it ends. What is asked about files, contexts and the sandbox itself
/// never waits for a run; what changes a context's memory waits for that context's. When nobody uses
/// the sandbox and its alarm destroys it, no exit handlers run.
/// Threads: any, but those of runs only for what does not wait for a run.
class Sandbox final : public object::Object {
 public:
  using Done = std::function<void(Result<Finished>)>;

  static storage::Schema schema();

  /// `storage` is its own, and outlives it.
  Sandbox(storage::ObjectStorage& storage, const SandboxParts& parts);
  ~Sandbox() override;

  /// When it came into being; 0 before its first use.
  std::int64_t created_ms() const;

  /// Every route of the protocol. The request's `cancel` ends a run early.
  protocol::Response fetch(const protocol::Request& request);

  // --- contexts

  Result<ContextRecord> create_context(const NewContext& wanted);
  /// Oldest first.
  Result<std::vector<ContextRecord>> contexts();
  Result<ContextRecord> context(std::string_view id);
  /// Stops its runs, then lets its exit handlers run, which print to `events`; so does this, if they do
  /// not end well or cannot run. They wait for their turn as a run does. Files stay. Also when its
  /// Worker cannot be reached.
  /// Errors: kLimitExceeded when too many runs wait.
  Result<void> delete_context(std::string_view id, RunEvents& events);

  // --- runs. An error of the code is part of the outcome; docs/sandbox.md says what is kept after it.

  /// Runs in `run.context`, or else in the binding's oldest context, which is made if there is none. A
  /// binding without contexts runs the code once and forgets it. `done` is called once: on the run's
  /// thread, or on this one for a run that is refused. The sandbox stays leased and `events` stay
  /// alive until then.
  void start(Run run, const std::string& binding, RunEvents& events, Done done);
  /// The same, and waits. Not from the thread of a run.
  Result<Finished> run(Run run, const std::string& binding, RunEvents& events);
  /// Ends the runs of a context, those that wait for their turn too, as Run::cancel does.
  Result<void> interrupt(std::string_view context);
  /// The same for all contexts.
  void interrupt_all();

  // --- versions of a context's memory. Files belong to all contexts: they are as they are, unless
  // VersionOptions say otherwise. What is told of them compares with those of the step whose memory it is.

  /// The steps that can be gone back to, oldest first.
  Result<std::vector<protocol::HistoryEntry>> history(std::string_view id);
  /// A second context that goes on from a version of the first.
  /// Errors of these three: kNotFound if files are wanted and how they were is not kept, naming the first
  /// step of which it is. If the Worker is elsewhere, memory has gone back nevertheless.
  Result<Fork> fork(std::string_view id, const std::optional<std::string>& new_id,
                    const ContextVersion& from = {}, const VersionOptions& options = {});
  /// Goes back to a version.
  Result<VersionFiles> restore(std::string_view id, const ContextVersion& version,
                               const VersionOptions& options = {});
  /// Takes back what the last runs did to memory.
  Result<VersionFiles> undo(std::string_view id, std::uint32_t runs,
                            const VersionOptions& options = {});
  Result<void> add_checkpoint(std::string_view id, std::string_view name);
  Result<void> remove_checkpoint(std::string_view id, std::string_view name);
  Result<std::vector<protocol::Checkpoint>> checkpoints(std::string_view id);

  // --- the rest

  Result<void> set_env(const EnvChanges& changes);
  /// Of runs from now on that do not say, and whose contexts do not. Absent: the host's setting.
  Result<void> set_durability(std::optional<Durability> durability);
  Result<SandboxInfo> info();
  /// Stops all runs, ends all contexts as `delete_context` does, then deletes everything, here and at
  /// the Interpreters. The next use begins anew.
  Result<void> destroy(RunEvents& events);
  /// Copies all of it, as it is at one moment, to other objects; `body` changes the copy's own.
  /// Errors: kNotSupported for contexts in a Worker elsewhere.
  Result<void> copy_to(const storage::ObjectName& to, const storage::TransactionBody& body);
  /// Stops its runs and makes it a copy of what is stored elsewhere. This object is lost by that: the
  /// next lease is of another.
  Result<void> become(const StoredSandbox& other, const storage::TransactionBody& body);

  /// Destroys it if nobody used it.
  Result<void> on_alarm(object::Time scheduled) override;

  /// Does something with the files; what it changed is stored before this returns. `operation` is
  /// the protocol's ("file.read"), `path` as the caller wrote it: for errors.
  template <class Use>
  std::invoke_result_t<Use, Workspace&, std::uint64_t> with_files(FileUse kind,
                                                                  std::string_view operation,
                                                                  std::string_view path,
                                                                  const Use& use) {
    const MutexLock lock(mutex_);
    SW_TRY(Workspace* const files, usable_files());
    auto outcome = use(*files, now_ns());
    // Some of what failed may have been done.
    const Step step{.files = kind == FileUse::kChange, .used = outcome.ok()};
    if (step.files || step.used) SW_CHECK_OK(store(step));
    if (!outcome.ok()) return file_failure(operation, path, std::move(outcome).error());
    return outcome;
  }

 private:
  friend class Routes;
  struct Launch;
  struct Execution;
  struct Interpreters;
  class Joint;
  struct VersionChange;
  class JointChange;

  /// What goes into one transaction.
  struct Step {
    bool files = false;                       // what differs from what is stored
    const ContextRecord* context = nullptr;   // to be written
    std::optional<std::string> erased = {};   // a context to be erased
    bool record = false;                      // the sandbox's own is written
    bool key = false;                         // and that of its Interpreters
    bool used = false;                        // counts as use
    Execution* run = nullptr;                 // whose end it is: it waits for the disk
    const Interpreters* with = nullptr;       // what an Interpreter stores with it
    std::optional<std::uint64_t> ended = {};  // a step of the context
    std::optional<ContextStep> forked = {};   // where the context begins
  };
  using Contexts = std::map<std::string, ContextRecord, std::less<>>;
  /// The turn of whoever makes a context: their names and number are checked before they are there.
  /// No context can be called so.
  static constexpr std::string_view kNewContexts = "";
  using Question = std::function<Result<protocol::ContextInfo>(protocol::Interpreter&)>;
  using ChangeQuestion = std::function<Result<protocol::ContextInfo>(protocol::Interpreter&,
                                                                     protocol::JointChange& joint)>;
  using Look = std::function<Result<void>(protocol::Interpreter&)>;

  Result<void> load() SW_REQUIRES(mutex_);
  Result<void> store(const Step& step) SW_REQUIRES(mutex_);
  FileStore::Changes file_changes(const Step& step) SW_REQUIRES(mutex_);
  Result<void> transact(const Step& step, const storage::TransactionBody& body) SW_REQUIRES(mutex_);
  void forget() SW_REQUIRES(mutex_);
  Result<Workspace*> files() SW_REQUIRES(mutex_);
  Result<Workspace*> usable_files() SW_REQUIRES(mutex_);
  Result<ContextRecord*> find(std::string_view id) SW_REQUIRES(mutex_);
  ContextRecord* oldest_of(std::string_view binding) SW_REQUIRES(mutex_);
  Result<void> check_new_id(const std::optional<std::string>& id) SW_REQUIRES(mutex_);
  ContextRecord new_record(std::string id) SW_REQUIRES(mutex_);
  Result<ContextRecord> keep(ContextRecord record) SW_REQUIRES(mutex_);
  Result<void> begin(Execution& execution) SW_REQUIRES(mutex_);
  Result<Finished> end(Execution& execution, Result<protocol::ExecuteResponse> answer)
      SW_REQUIRES(mutex_);
  Result<void> take_over(Execution& execution, const protocol::ExecuteResponse& response,
                         const Interpreters* with) SW_REQUIRES(mutex_);
  Result<void> take_over(VersionChange& change, const protocol::ContextInfo& said,
                         const Interpreters* with) SW_REQUIRES(mutex_);
  Result<void> look_at_files(VersionChange& change, std::optional<std::uint64_t> step)
      SW_REQUIRES(mutex_);
  Result<void> apply_files(const WorkspaceDiff& changes) SW_REQUIRES(mutex_);
  void apply_env(Run& run, const ContextRecord* context) const SW_REQUIRES(mutex_);
  std::vector<ContextRecord> by_age() const SW_REQUIRES(mutex_);
  Result<void> destroy_all(const std::set<std::string>& bindings) SW_REQUIRES(mutex_);
  std::set<std::string> bindings_in_use() SW_REQUIRES(mutex_);
  Result<StoredSandbox> stored() SW_REQUIRES(mutex_);
  Result<void> replace_by(const StoredSandbox& other, const storage::TransactionBody& body)
      SW_REQUIRES(mutex_);

  // These give the mutex up while they wait for a Worker or an Interpreter.

  Result<std::string> context_for(const Run& run, const Binding& binding, MutexLock& lock)
      SW_REQUIRES(mutex_);
  static Result<protocol::ContextInfo> make_anew(
      protocol::Interpreter& interpreter, std::string_view id, bool chosen,
      const std::function<Result<protocol::ContextInfo>()>& make);
  Result<ContextRecord> create(const Binding& binding, const protocol::WorkerInfo& info,
                               const NewContext& wanted) SW_REQUIRES(mutex_);
  Result<protocol::WorkerInfo> probe(const Binding& binding) SW_REQUIRES(mutex_);
  Result<protocol::ExecuteResponse> execute(Execution& execution, RunEvents& events)
      SW_REQUIRES(mutex_);
  Result<protocol::ContextInfo> ask(const ContextRecord& context, const Question& question)
      SW_REQUIRES(mutex_);

  Result<void> check_loads() SW_EXCLUDES(mutex_);
  Result<void> check_files() SW_EXCLUDES(mutex_);
  Result<Finished> run_once(const Launch& launch, RunEvents& events) SW_EXCLUDES(mutex_);
  Result<Finished> run_in_context(const Launch& launch, executor::GuestPool::Slot& slot,
                                  RunEvents& events) SW_EXCLUDES(mutex_);
  Result<void> wait_for_disk(Execution& execution) SW_EXCLUDES(mutex_);
  Result<std::shared_ptr<Launch>> prepare(Run run, const std::string& binding) SW_EXCLUDES(mutex_);
  void forget_run(const Launch& launch) SW_EXCLUDES(mutex_);
  Result<void> end_context(std::string_view id, std::chrono::nanoseconds wall_max,
                           RunEvents& events) SW_EXCLUDES(mutex_);
  void remove_at_interpreter(const Execution& execution) SW_REQUIRES(mutex_);
  Result<void> change(VersionChange& change, const ChangeQuestion& question) SW_REQUIRES(mutex_);
  Result<VersionFiles> rewind(std::string_view id, const VersionOptions& options,
                              const ChangeQuestion& question) SW_EXCLUDES(mutex_);
  Result<void> change_checkpoints(std::string_view id, const Question& question)
      SW_EXCLUDES(mutex_);
  Result<void> look_at(std::string_view id, const Look& look) SW_EXCLUDES(mutex_);

  static Error file_failure(std::string_view operation, std::string_view path, Error error);
  std::int64_t now_ms() const;
  std::uint64_t now_ns() const;

  const SandboxParts& parts_;
  const storage::ObjectName name_;

  mutable Mutex mutex_;
  storage::ObjectStorage& storage_ SW_GUARDED_BY(mutex_);
  object::Turns turns_ SW_GUARDED_BY(mutex_);  // of contexts, and of kNewContexts
  // A copy of what is stored; absent until it is needed.
  std::optional<SandboxRecord> record_ SW_GUARDED_BY(mutex_);
  std::string key_ SW_GUARDED_BY(mutex_);  // of its Interpreters
  Contexts contexts_ SW_GUARDED_BY(mutex_);
  std::optional<FileStore> store_ SW_GUARDED_BY(mutex_);
  std::optional<Workspace> workspace_ SW_GUARDED_BY(mutex_);
  std::optional<object::Time> expires_ SW_GUARDED_BY(mutex_);
  object::Time last_used_ SW_GUARDED_BY(mutex_){};  // exact, where the record's lags behind
  // By context.
  std::multimap<std::string, std::stop_source, std::less<>> runs_ SW_GUARDED_BY(mutex_);
  CondVar no_runs_;
  int ending_ SW_GUARDED_BY(mutex_) = 0;  // calls of `destroy` in progress
};

}  // namespace sw::sandbox
