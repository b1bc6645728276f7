// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "interpreter/interpreter.h"

#include <fmt/format.h>

#include "interpreter/execution.h"
#include "interpreter/stored_memory.h"
#include "protocol/messages.h"
#include "sandbox_workers/protocol/answers.h"

namespace sw::interpreter {

using protocol::ExecuteResponse;

namespace {

/// An engine's author may say how a run ended by the error alone.
Ending ending_of(const Outcome& outcome) {
  if (!outcome.error || outcome.ending != Ending::kCompleted) return outcome.ending;
  return outcome.error->name == kExecutionLimitError ? Ending::kTimeLimit : Ending::kGuestError;
}

Error engine_failed(const Error& error) {
  return Error{ErrorCode::kInternal, fmt::format("Engine execution failed: {}", error.message), 0};
}

Error cannot_restore(std::string_view id, Error error) {
  return engine_failed(std::move(error).while_doing(fmt::format(
      "restoring context '{}' (undo its last run, restore a checkpoint, or delete it)", id)));
}

}  // namespace

Interpreter::Interpreter(std::shared_ptr<engine::Engine> engine, ResidencyPool& pool,
                         std::unique_ptr<Contexts> contexts)
    : engine_(std::move(engine)), pool_(pool), contexts_(std::move(contexts)) {}

bool is_error(Ending ending) { return ending != Ending::kCompleted && ending != Ending::kExited; }

Interpreter::~Interpreter() { pool_.clear(this); }

Result<std::unique_ptr<Interpreter>> Interpreter::open(std::shared_ptr<engine::Engine> engine,
                                                       storage::ObjectStorage& storage,
                                                       ResidencyPool& pool, object::Clock& clock,
                                                       const ContextsOptions& options) {
  SW_TRY(auto contexts, Contexts::open(storage, clock, options));
  return std::unique_ptr<Interpreter>(
      new Interpreter(std::move(engine), pool, std::move(contexts)));
}

Result<void> Interpreter::destroy_all() {
  pool_.clear(this);
  return contexts_->destroy();
}

Result<void> Interpreter::destroy() {
  MutexLock lock(mutex_);
  turns_.wait_for_none(lock);
  return destroy_all();
}

Result<void> Interpreter::on_alarm(object::Time /*scheduled*/) {
  const MutexLock lock(mutex_);
  SW_TRY(const auto verdict, contexts_->alarm());
  if (verdict != object::IdleVerdict::kDestroy) return {};
  // A run that is under way is use, even if it comes to nothing.
  return turns_.none() ? destroy_all() : contexts_->touch();
}

// --- a run

Result<void> Interpreter::check(const sw::Run& run) const {
  if (!run.ends_context) {
    SW_CHECK_OK(protocol::check_code(run.code, engine_->info().limits.code_bytes));
  }
  SW_CHECK_OK(validate(run));
  if (run.context.empty()) return protocol::refusal("contextId must be a non-empty string");
  return {};
}

Result<ExecuteResponse> Interpreter::execute(protocol::ExecuteArgs args, RunEvents& events) {
  SW_CHECK_OK(check(args.run));
  Execution run{.args = std::move(args), .events = events};
  if (!run.args.run.files) run.args.run.files = std::make_shared<const RunFiles>();
  run.response.outcome.context.emplace();
  MutexLock lock(mutex_);
  const object::Turns::Turn turn(turns_, run.id(), lock);
  Result<void> ready = prepare(run);
  {
    const Unlocked unlocked(mutex_);
    if (ready.ok()) ready = ensure_session(run);
    if (ready.ok() && run.resident->session) ready = execute(run);
    // Nothing was run, or the engine has no files.
    if (ready.ok() && !run.response.outcome.files) run.put_files_back();
  }
  Result<ExecuteResponse> answered = ready.ok() ? conclude(run) : std::move(ready).error();
  // An instance that was found is as good as before a run that did not begin.
  const bool keep = run.resident && run.resident->session;
  const Unlocked unlocked(mutex_);
  if (keep) pool_.put(this, run.id(), std::move(run.resident));
  return answered;
}

Result<void> Interpreter::prepare(Execution& run) {
  if (contexts_->storage().may_miss_changes()) {
    run.note(
        fmt::format("the program ended without closing its storage: runs that were answered as "
                    "relaxed less than {} ms before may be lost",
                    kRelaxedDelay.count()));
  }
  SW_CHECK_OK(contexts_->ensure_metadata());
  SW_TRY(run.row, contexts_->existing(run.id()));
  SW_CHECK_OK(agree_on_count(run));
  run.resident = pool_.take(this, run.id());
  if (run.resident && run.resident->session->invalid()) run.resident.reset();
  if (!run.resident) run.resident = std::make_unique<Resident>();
  return {};
}

/// The Sandbox stores a run's files after this Interpreter has stored its memory. If it did not get
/// that far, the run has to go here, too.
Result<void> Interpreter::agree_on_count(Execution& run) {
  if (!run.args.executions_known || *run.args.executions_known == run.row.executions) return {};
  const std::uint64_t known = *run.args.executions_known;
  const std::uint64_t here = run.row.executions;
  if (here == known + 1) {
    auto taken_back = contexts_->take_back(run.id(), run.row);
    const bool damaged = !taken_back.ok() && taken_back.error().code == ErrorCode::kCorrupt;
    if (!taken_back.ok() && !damaged) return std::move(taken_back).error();
    if (!damaged && *taken_back) {
      (void)pool_.take(this, run.id());
      run.note(fmt::format("run {} was undone because its answer was lost", here));
      return {};
    }
  }
  run.note(
      fmt::format("stale: the sandbox knows of {} runs of this context and its interpreter "
                  "of {}, so memory and files may be from different runs",
                  known, here));
  run.row.executions = known;  // so that it is said once
  return {};
}

Result<void> Interpreter::ensure_session(Execution& run) {
  ContextRun& told = run.told();
  if (run.resident->session) {
    told.state = ContextState::kLive;
    return {};
  }
  if (!engine_->has_sessions()) {
    return Error{ErrorCode::kBadReply, "This engine has no session support", 0};
  }
  if (run.args.run.ends_context && !engine_->is_ready()) {
    run.note("exit handlers did not run: the language is not prepared");
    return {};
  }
  MutexLock lock(mutex_);
  if (!contexts_->has_memory(run.id())) {
    lock.unlock();
    return boot(run, run.row.executions == 0
                         ? kNewContextNote
                         : "no run of the context is saved, so it starts fresh");
  }
  SW_TRY(const snapshot::VersionInfo version, contexts_->newest(run.id()));
  lock.unlock();
  if (version.build != engine_->info().build) {
    return boot(run, fmt::format("the saved memory belongs to another build ({}); it is kept until "
                                 "a run of this build is saved",
                                 version.build));
  }
  return restore(run, version);
}

Result<void> Interpreter::boot(Execution& run, std::string_view note) {
  if (run.args.run.ends_context) {
    if (run.row.executions != 0) {
      run.note("exit handlers did not run: no memory of this build is saved");
    }
    return {};
  }
  auto session = engine_->boot();
  if (!session.ok()) return engine_failed(session.error());
  const MutexLock lock(mutex_);
  SW_TRY(snapshot::LiveMemory live, contexts_->snapshots().begin(run.id(), engine_->info().build));
  run.resident->live = std::move(live);
  run.resident->session = *std::move(session);
  run.told().state = ContextState::kFresh;
  run.note(note);
  return {};
}

Result<void> Interpreter::restore(Execution& run, const snapshot::VersionInfo& version) {
  MutexLock lock(mutex_);
  StoredMemory stored(contexts_->snapshots(), mutex_, run.id(), version);
  lock.unlock();
  auto session = engine_->restore(stored);
  if (!session.ok()) return cannot_restore(run.id(), std::move(session).error());
  run.resident->live = stored.take_live();
  if (!run.resident->live) {
    return engine_failed({.message = "it restored a context without reading its memory"});
  }
  run.resident->session = *std::move(session);
  run.told().state = ContextState::kRestored;
  if (run.row.stale()) {
    run.note(
        fmt::format("stale: the memory is that of run {}; later runs, up to run "
                    "{}, could not be saved",
                    *run.row.saved_execution, run.row.executions));
  }
  return {};
}

Result<void> Interpreter::execute(Execution& run) {
  sw::Run& request = run.args.run;
  // An instance counts its own cells, and does not know of those that were run elsewhere or thrown
  // away.
  if (request.file_name.empty())
    request.file_name = fmt::format("<cell {}>", run.row.executions + 1);
  if (run.told().state == ContextState::kFresh) request.cwd = run.row.cwd;

  auto outcome = run.resident->session->execute(request, run.events);
  if (!outcome.ok()) {
    const ErrorCode code = outcome.error().code;
    if (code == ErrorCode::kInvalidArgument || code == ErrorCode::kBadReply) return outcome.error();
    // What the instance holds now is nobody's state.
    run.resident.reset();
    if (code == ErrorCode::kCorrupt) return cannot_restore(run.id(), std::move(outcome).error());
    outcome = engine::engine_error_outcome(outcome.error());
    outcome->cwd.clear();
  }
  outcome->context = std::move(run.response.outcome.context);
  outcome->ending = ending_of(*outcome);
  run.response.outcome = *std::move(outcome);
  if (run.resident && run.resident->session->invalid()) run.resident.reset();
  return {};
}

Result<ExecuteResponse> Interpreter::conclude(Execution& run) {
  if (run.args.run.ends_context) return conclude_end(run);
  decide(run);
  SW_CHECK_OK(store(run));
  return std::move(run.response);
}

/// What exit handlers wrote is kept, unless they were stopped by force. The context stays until it is
/// removed: what it wrote has to be stored first.
ExecuteResponse Interpreter::conclude_end(Execution& run) {
  run.resident.reset();
  if (run.response.outcome.cut_off) run.put_files_back();
  run.told().id = run.id();
  run.told().executions = run.row.executions;
  run.response.outcome.cwd = protocol::kWorkspacePath;
  return std::move(run.response);
}

}  // namespace sw::interpreter
