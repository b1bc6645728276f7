// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "interpreter/server.h"

#include <fmt/format.h>

#include <chrono>
#include <set>

#include "interpreter/routes.h"
#include "interpreter/stored_memory.h"
#include "runtime/messages.h"
#include "sandbox_workers/runtime/answers.h"

namespace sw::interpreter {

using runtime::Answer;
using runtime::ContextState;
using runtime::ErrorBody;
using runtime::ExecuteResponse;

namespace {

bool is_error(engine::Ending ending) {
  return ending != engine::Ending::kCompleted && ending != engine::Ending::kExited;
}

/// An engine's author may say how a run ended by the error alone.
engine::Ending ending_of(const engine::Outcome& outcome) {
  if (!outcome.error || outcome.ending != engine::Ending::kCompleted) return outcome.ending;
  return outcome.error->name == engine::kExecutionLimitError ? engine::Ending::kTimeLimit
                                                             : engine::Ending::kGuestError;
}

ErrorBody engine_failed(const Error& error) {
  return runtime::internal_error(fmt::format("Engine execution failed: {}", error.message), 502);
}

void add(std::string& note, std::string_view more) {
  if (!note.empty() && !more.empty()) note += "; ";
  note += more;
}

/// Are these the files that were asked for, each once?
bool were_asked_for(const std::vector<WorkspaceFile>& files, const std::vector<std::string>& paths) {
  std::set<std::string_view> asked(paths.begin(), paths.end());
  for (const WorkspaceFile& file : files) {
    if (asked.erase(file.path) == 0) return false;
  }
  return true;
}

}  // namespace

/// One run, from the request to the answer.
struct InterpreterServer::Run {
  const runtime::ExecuteArgs& args;
  const runtime::GetFiles& get_files;
  wasi::OutputSink& output;
  const std::stop_token& cancel;
  ContextRow row = {};
  std::unique_ptr<Resident> resident = {};
  wasi::TreeState files_before = {};
  bool files_are_back = false;
  ExecuteResponse response = {};
};

InterpreterServer::InterpreterServer(std::shared_ptr<engine::Engine> engine, std::shared_ptr<ResidencyPool> pool,
                                     const ServerOptions& options, std::unique_ptr<Contexts> contexts)
    : engine_(std::move(engine)),
      options_(options),
      contexts_(std::move(contexts)),
      mirror_(std::make_shared<Workspace>(options.workspace_limits, contexts_->now_ns())),
      tenant_(std::move(pool)) {}

Result<std::unique_ptr<InterpreterServer>> InterpreterServer::open(std::shared_ptr<engine::Engine> engine,
                                                                   storage::ObjectStorage& storage,
                                                                   std::shared_ptr<ResidencyPool> pool,
                                                                   object::Clock& clock,
                                                                   const ServerOptions& options) {
  SW_TRY(auto contexts, Contexts::open(storage, clock, options.contexts));
  return std::unique_ptr<InterpreterServer>(
      new InterpreterServer(std::move(engine), std::move(pool), options, std::move(contexts)));
}

runtime::Response InterpreterServer::fetch(const runtime::Request& request) {
  const auto working = tenant_.work();
  return Routes(*this).fetch(request);
}

Result<void> InterpreterServer::destroy() {
  tenant_.clear();
  mirror_ = std::make_shared<Workspace>(options_.workspace_limits, contexts_->now_ns());
  return contexts_->destroy();
}

Result<object::IdleVerdict> InterpreterServer::on_alarm() {
  const auto working = tenant_.work();
  SW_TRY(const auto verdict, contexts_->alarm());
  if (verdict == object::IdleVerdict::kDestroy) SW_CHECK_OK(destroy());
  return verdict;
}

// --- a run

Answer<ExecuteResponse> InterpreterServer::execute_in_context(const runtime::ExecuteArgs& args,
                                                              const runtime::GetFiles& get_files,
                                                              wasi::OutputSink& output,
                                                              const std::stop_token& cancel) {
  const auto working = tenant_.work();
  Run run{.args = args, .get_files = get_files, .output = output, .cancel = cancel};
  using Step = Refusal (InterpreterServer::*)(Run&);
  for (const Step step : {&InterpreterServer::find_row, &InterpreterServer::agree_on_count,
                          &InterpreterServer::reconcile, &InterpreterServer::ensure_instance}) {
    if (auto refusal = (this->*step)(run)) {
      // An instance that was found is as good as before.
      if (run.resident) tenant_.put(std::move(run.resident));
      return *std::move(refusal);
    }
  }
  execute(run);
  if (auto failure = store(run)) return *std::move(failure);
  auto answered = answer(run);
  if (run.resident) tenant_.put(std::move(run.resident));
  return answered;
}

InterpreterServer::Refusal InterpreterServer::find_row(Run& run) {
  if (const auto made = contexts_->ensure_metadata(); !made.ok()) return runtime::error_body(made.error());
  if (auto wrong = runtime::check_code(run.args.code, engine_->info().limits.code_bytes)) return wrong;
  engine::RunRequest request;
  request.code = run.args.code;
  request.env = run.args.env;
  request.args = run.args.args;
  if (const auto valid = engine::validate(request); !valid.ok()) {
    return runtime::validation_failed(valid.error().message);
  }
  if (run.args.context_id.empty()) return runtime::validation_failed("contextId must be a non-empty string");
  auto row = contexts_->find(run.args.context_id);
  if (!row.ok()) return runtime::error_body(row.error());
  if (!*row) return runtime::context_not_found(run.args.context_id);
  run.row = **std::move(row);
  return std::nullopt;
}

/// The Sandbox stores a run's files after this Interpreter has stored its memory. If it did not get that far, the
/// run has to go here, too.
InterpreterServer::Refusal InterpreterServer::agree_on_count(Run& run) {
  if (!run.args.executions_known || *run.args.executions_known == run.row.executions) return std::nullopt;
  const std::uint64_t known = *run.args.executions_known;
  const std::uint64_t here = run.row.executions;
  std::string& note = run.response.note;
  if (here == known + 1) {
    auto taken_back = contexts_->take_back(run.args.context_id, run.row);
    const bool damaged = !taken_back.ok() && taken_back.error().code == ErrorCode::kCorrupt;
    if (!taken_back.ok() && !damaged) return runtime::error_body(taken_back.error());
    if (!damaged && *taken_back) {
      tenant_.drop(run.args.context_id);
      add(note, fmt::format("run {} was taken back, because its answer was lost", here));
      return std::nullopt;
    }
  }
  add(note, fmt::format("stale: the sandbox knows of {} runs of this context and its interpreter of {}, so memory "
                        "and files may be of different runs",
                        known, here));
  run.row.executions = known;  // so that it is said once
  return std::nullopt;
}

InterpreterServer::Refusal InterpreterServer::reconcile(Run& run) {
  auto missing = mirror_->apply_sync(run.args.workspace, {}, contexts_->now_ns());
  if (!missing.ok()) return runtime::validation_failed(missing.error().message);
  if (missing->empty()) return std::nullopt;
  std::vector<WorkspaceFile> files;
  try {
    files = run.get_files(*missing);
  } catch (const std::exception& problem) {  // it is the caller's, and this thread is not
    return runtime::internal_error(fmt::format("Sandbox failed to provide files: {}", problem.what()));
  }
  if (!were_asked_for(files, *missing)) {
    return runtime::internal_error("Sandbox returned an invalid workspace file entry");
  }
  auto left = mirror_->apply_sync(run.args.workspace, files, contexts_->now_ns());
  if (!left.ok()) return runtime::internal_error(left.error().message);
  if (!left->empty()) {
    return runtime::internal_error(fmt::format("Sandbox did not provide {} workspace file(s)", left->size()));
  }
  return std::nullopt;
}

InterpreterServer::Refusal InterpreterServer::boot(Run& run, std::string note) {
  auto session = engine_->boot({.workspace = mirror_, .cwd = run.row.cwd});
  if (!session.ok()) return engine_failed(session.error());
  auto live = contexts_->snapshots().begin(run.args.context_id, engine_->info().build);
  if (!live.ok()) return runtime::error_body(live.error());
  run.resident = std::make_unique<Resident>(
      Resident{.context = run.args.context_id, .live = *std::move(live), .session = *std::move(session)});
  run.response.state = ContextState::kFresh;
  add(run.response.note, note);
  return std::nullopt;
}

InterpreterServer::Refusal InterpreterServer::restore(Run& run, const snapshot::VersionInfo& version) {
  StoredMemory stored(contexts_->snapshots(), run.args.context_id, version);
  auto session = engine_->restore({.workspace = mirror_, .cwd = run.row.cwd}, stored);
  if (!session.ok()) {
    return engine_failed(std::move(session).error().while_doing(
        fmt::format("restoring context '{}' (undo its last run, go back to a checkpoint, or delete it)",
                    run.args.context_id)));
  }
  auto live = stored.take_live();
  if (!live) return runtime::internal_error("the engine restored a context without reading its memory", 502);
  run.resident = std::make_unique<Resident>(
      Resident{.context = run.args.context_id, .live = *std::move(live), .session = *std::move(session)});
  run.response.state = ContextState::kRestored;
  if (run.row.stale()) {
    add(run.response.note,
        fmt::format("stale: the memory is that of run {}; what was done up to run {} could not be saved",
                    *run.row.saved_execution, run.row.executions));
  }
  return std::nullopt;
}

InterpreterServer::Refusal InterpreterServer::ensure_instance(Run& run) {
  const std::string& id = run.args.context_id;
  run.resident = tenant_.take(id);
  if (run.resident && run.resident->session->invalid()) run.resident.reset();
  if (run.resident) {
    run.response.state = ContextState::kLive;
    return std::nullopt;
  }
  if (!engine_->has_sessions()) return runtime::internal_error("This engine has no session support");
  if (!contexts_->has_memory(id)) {
    return boot(run, run.row.executions == 0 ? std::string(runtime::kNewContextNote)
                                             : "no run of the context is saved, so it begins anew");
  }
  const auto version = contexts_->newest(id);
  if (!version.ok()) return runtime::error_body(version.error());
  if (version->build != engine_->info().build) {
    return boot(run, fmt::format("the saved memory belongs to another build ({}); it stays until a run of this "
                                 "build is saved",
                                 version->build));
  }
  return restore(run, *version);
}

void InterpreterServer::execute(Run& run) {
  engine::RunRequest request;
  request.code = run.args.code;
  request.alias = run.args.alias;
  // An instance counts its own cells, and does not know of those that were run elsewhere or thrown away.
  request.file_name = fmt::format("<cell {}>", run.row.executions + 1);
  request.env = run.args.env;
  request.args = run.args.args;
  request.stdin_data = run.args.stdin_data;
  request.limits = run.args.limits;
  request.cancel = run.cancel;
  request.workspace = mirror_->tree();
  if (run.response.state == ContextState::kFresh) request.cwd = run.row.cwd;
  run.files_before = mirror_->remember();

  auto outcome = run.resident->session->execute(request, run.output);
  engine::Outcome& result = run.response.outcome;
  if (outcome.ok()) {
    result = *std::move(outcome);
    result.ending = ending_of(result);
  } else {
    // What the instance holds now is nobody's state.
    run.resident.reset();
    result = engine::engine_error_outcome(outcome.error());
    result.cwd.clear();
  }
  if (run.resident && run.resident->session->invalid()) run.resident.reset();
  conclude(run);
}

/// Decides what is kept of a run: the table in the header.
void InterpreterServer::conclude(Run& run) {
  const engine::Outcome& result = run.response.outcome;
  ContextRow& row = run.row;
  row.before = ContextRow::Before{.cwd = row.cwd, .saved_execution = row.saved_execution};
  ++row.executions;
  row.last_used_ms = contexts_->now_ms();
  const auto after_error = is_error(result.ending) ? run.args.after_error : runtime::AfterError::kKeep;
  if (after_error == runtime::AfterError::kRollback) {
    roll_back(run);
  } else if (!run.resident) {
    put_files_back(run);
    add(run.response.note, "the memory of this run was not saved, and its files were put back");
  } else {
    if (!result.cwd.empty()) row.cwd = result.cwd;
    if (after_error == runtime::AfterError::kFilesBack) put_files_back(run);
  }
}

void InterpreterServer::roll_back(Run& run) {
  ContextRow& row = run.row;
  run.resident.reset();  // the next run begins from what is saved
  put_files_back(run);
  if (!contexts_->has_memory(run.args.context_id)) {
    add(run.response.note, "rolled back: no run of the context is saved, so the next one begins anew");
  } else if (row.saved_execution == row.executions - 1) {
    row.saved_execution = row.executions;
    row.before->rolled_back = true;
    add(run.response.note, "rolled back: memory and files are as before this run");
  } else {
    add(run.response.note,
        fmt::format("rolled back: files are as before this run, but the memory is that of run {}, "
                    "the last one that was saved",
                    row.saved_execution.value_or(0)));
  }
}

void InterpreterServer::put_files_back(Run& run) {
  wasi::Tree& tree = *mirror_->tree();
  const bool disabled = tree.disabled();
  tree.set_disabled(false);
  // If it cannot be (limits were lowered meanwhile), the next manifest says what is missing.
  (void)run.files_before.restore(tree, contexts_->now_ns());
  tree.set_disabled(disabled);
  run.files_are_back = true;
}

/// Stores what the run did; its memory too, if the rules say so.
InterpreterServer::Refusal InterpreterServer::store(Run& run) {
  if (run.resident && run.resident->session->can_snapshot()) return save(run);
  if (run.resident) {
    // How much it holds is known exactly only when it is saved.
    if (run.resident->bytes == 0) run.resident->bytes = run.response.outcome.usage.memory_bytes;
    add(run.response.note, "the memory of this run was not saved");
  }
  const auto written = contexts_->write(run.args.context_id, run.row);
  if (written.ok()) return std::nullopt;
  run.resident.reset();  // its memory is of a run that nobody will hear of
  return runtime::error_body(written.error());
}

InterpreterServer::Refusal InterpreterServer::save(Run& run) {
  const auto begin = std::chrono::steady_clock::now();
  const auto state = run.resident->session->snapshot();
  Result<snapshot::SaveStats> saved = state.ok() ? contexts_->save(run.resident->live,
                                                                   {.memory = state->memory,
                                                                    .image = state->base,
                                                                    .changed = state->changed,
                                                                    .host_tables = state->extra},
                                                                   run.args.context_id, run.row)
                                                 : Result<snapshot::SaveStats>(state.error());
  if (!saved.ok()) {
    const ErrorCode code = saved.error().code;
    const bool cannot_be_saved = code == ErrorCode::kInvalidArgument || code == ErrorCode::kLimitExceeded;
    if (cannot_be_saved && contexts_->write(run.args.context_id, run.row).ok()) {
      add(run.response.note, "stale: the memory could not be saved: " + saved.error().message);
      return std::nullopt;
    }
    run.resident.reset();
    return runtime::error_body(std::move(saved).error().while_doing("storing the run"));
  }
  using Milliseconds = std::chrono::duration<double, std::milli>;
  run.response.snapshot_ms = Milliseconds(std::chrono::steady_clock::now() - begin).count();
  run.response.snapshot_bytes_written = saved->bytes_written;
  run.resident->bytes = run.resident->live.bookkeeping_bytes();
  for (const ByteRange& range : state->changed) run.resident->bytes += range.end - range.begin;
  return std::nullopt;
}

Answer<ExecuteResponse> InterpreterServer::answer(Run& run) {
  ExecuteResponse& response = run.response;
  response.executions = run.row.executions;
  response.cwd = run.row.cwd;
  if (response.snapshot_ms) {
    auto snapshot = contexts_->snapshot_info(run.resident->live, run.row);
    if (!snapshot.ok()) return runtime::error_body(snapshot.error());
    response.snapshot = *std::move(snapshot);
  } else {
    auto snapshot = contexts_->snapshot_info(run.args.context_id, run.row);
    if (!snapshot.ok()) return runtime::error_body(snapshot.error());
    response.snapshot = *std::move(snapshot);
  }
  response.workspace = run.files_are_back ? workspace_diff(run.files_before, run.files_before)
                                          : mirror_->changes_since(run.files_before);
  return std::move(response);
}

}  // namespace sw::interpreter
