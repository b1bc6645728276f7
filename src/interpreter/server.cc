// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "interpreter/server.h"

#include <fmt/format.h>

#include <chrono>
#include <set>

#include "interpreter/stored_memory.h"
#include "runtime/messages.h"
#include "sandbox_workers/runtime/answers.h"

namespace sw::interpreter {

using runtime::Checkpoint;
using runtime::ContextInfo;
using runtime::ContextState;
using runtime::ExecuteResponse;

namespace {

bool is_error(Ending ending) { return ending != Ending::kCompleted && ending != Ending::kExited; }

/// An engine's author may say how a run ended by the error alone.
Ending ending_of(const Outcome& outcome) {
  if (!outcome.error || outcome.ending != Ending::kCompleted) return outcome.ending;
  return outcome.error->name == kExecutionLimitError ? Ending::kTimeLimit : Ending::kGuestError;
}

Error engine_failed(const Error& error) {
  return Error{ErrorCode::kInternal, fmt::format("Engine execution failed: {}", error.message), 0};
}

Error bad_files(std::string message) { return Error{ErrorCode::kBadReply, std::move(message), 0}; }

/// What a caller must not ask: too much of something is one, too.
template <class T>
Result<T> refused_or(Result<T> result) {
  if (result.ok() || result.error().code != ErrorCode::kLimitExceeded) return result;
  Error error = std::move(result).error();
  error.code = ErrorCode::kInvalidArgument;
  return error;
}

void add(std::string& note, std::string_view more) {
  if (!note.empty() && !more.empty()) note += "; ";
  note += more;
}

/// Are these the files that were asked for, each once?
bool were_asked_for(const std::vector<WorkspaceFile>& files,
                    const std::vector<std::string>& paths) {
  std::set<std::string_view> asked(paths.begin(), paths.end());
  for (const WorkspaceFile& file : files) {
    if (asked.erase(file.path) == 0) return false;
  }
  return true;
}

}  // namespace

/// One run, from the request to the answer.
struct InterpreterServer::Run {
  const runtime::ExecuteArgs args;
  const runtime::GetFiles& get_files;
  RunEvents& output;
  ContextRow row = {};
  std::unique_ptr<Resident> resident = {};
  wasi::TreeState files_before = {};
  bool files_are_back = false;
  ExecuteResponse response = {};
};

InterpreterServer::InterpreterServer(std::shared_ptr<engine::Engine> engine,
                                     std::shared_ptr<ResidencyPool> pool,
                                     const ServerOptions& options,
                                     std::unique_ptr<Contexts> contexts)
    : engine_(std::move(engine)),
      options_(options),
      contexts_(std::move(contexts)),
      mirror_(std::make_shared<Workspace>(options.workspace_limits, contexts_->now_ns())),
      tenant_(std::move(pool)) {}

Result<std::unique_ptr<InterpreterServer>> InterpreterServer::open(
    std::shared_ptr<engine::Engine> engine, storage::ObjectStorage& storage,
    std::shared_ptr<ResidencyPool> pool, object::Clock& clock, const ServerOptions& options) {
  SW_TRY(auto contexts, Contexts::open(storage, clock, options.contexts));
  return std::unique_ptr<InterpreterServer>(
      new InterpreterServer(std::move(engine), std::move(pool), options, std::move(contexts)));
}

Result<void> InterpreterServer::destroy_all() {
  tenant_.clear();
  mirror_ = std::make_shared<Workspace>(options_.workspace_limits, contexts_->now_ns());
  return contexts_->destroy();
}

Result<void> InterpreterServer::destroy() {
  const auto working = tenant_.work();
  return destroy_all();
}

Result<object::IdleVerdict> InterpreterServer::on_alarm() {
  const auto working = tenant_.work();
  SW_TRY(const auto verdict, contexts_->alarm());
  if (verdict == object::IdleVerdict::kDestroy) SW_CHECK_OK(destroy_all());
  return verdict;
}

// --- a run

Result<ExecuteResponse> InterpreterServer::execute(runtime::ExecuteArgs args,
                                                   const runtime::GetFiles& get_files,
                                                   RunEvents& output) {
  const auto working = tenant_.work();
  Run run{.args = std::move(args), .get_files = get_files, .output = output};
  using Step = Result<void> (InterpreterServer::*)(Run&);
  for (const Step step : {&InterpreterServer::find_row, &InterpreterServer::agree_on_count,
                          &InterpreterServer::reconcile, &InterpreterServer::ensure_instance}) {
    if (auto ready = (this->*step)(run); !ready.ok()) {
      // An instance that was found is as good as before.
      if (run.resident) tenant_.put(std::move(run.resident));
      return std::move(ready).error();
    }
  }
  execute(run);
  SW_CHECK_OK(store(run));
  auto answered = answer(run);
  if (run.resident) tenant_.put(std::move(run.resident));
  return answered;
}

Result<void> InterpreterServer::find_row(Run& run) {
  SW_CHECK_OK(contexts_->ensure_metadata());
  SW_CHECK_OK(runtime::check_code(run.args.code, engine_->info().limits.code_bytes));
  Run request;
  request.code = run.args.code;
  request.env = run.args.env;
  request.args = run.args.args;
  request.file_name = run.args.file_name;
  SW_CHECK_OK(validate(request));
  if (run.args.context_id.empty()) {
    return runtime::refusal("contextId must be a non-empty string");
  }
  SW_TRY(run.row, contexts_->existing(run.args.context_id));
  return {};
}

/// The Sandbox stores a run's files after this Interpreter has stored its memory. If it did not get
/// that far, the run has to go here, too.
Result<void> InterpreterServer::agree_on_count(Run& run) {
  if (!run.args.executions_known || *run.args.executions_known == run.row.executions) return {};
  const std::uint64_t known = *run.args.executions_known;
  const std::uint64_t here = run.row.executions;
  std::string& note = run.response.note;
  if (here == known + 1) {
    auto taken_back = contexts_->take_back(run.args.context_id, run.row);
    const bool damaged = !taken_back.ok() && taken_back.error().code == ErrorCode::kCorrupt;
    if (!taken_back.ok() && !damaged) return std::move(taken_back).error();
    if (!damaged && *taken_back) {
      tenant_.drop(run.args.context_id);
      add(note, fmt::format("run {} was taken back, because its answer was lost", here));
      return {};
    }
  }
  add(note, fmt::format("stale: the sandbox knows of {} runs of this context and its interpreter "
                        "of {}, so memory "
                        "and files may be of different runs",
                        known, here));
  run.row.executions = known;  // so that it is said once
  return {};
}

Result<void> InterpreterServer::reconcile(Run& run) {
  auto missing = mirror_->apply_sync(run.args.workspace, {}, contexts_->now_ns());
  if (!missing.ok()) return std::move(missing).error();
  if (missing->empty()) return {};
  std::vector<WorkspaceFile> files;
  try {
    files = run.get_files(*missing);
  } catch (const std::exception& problem) {  // it is the caller's, and this thread is not
    return bad_files(fmt::format("Sandbox failed to provide files: {}", problem.what()));
  }
  if (!were_asked_for(files, *missing)) {
    return bad_files("Sandbox returned an invalid workspace file entry");
  }
  auto left = mirror_->apply_sync(run.args.workspace, files, contexts_->now_ns());
  if (!left.ok()) return bad_files(left.error().message);
  if (!left->empty()) {
    return bad_files(fmt::format("Sandbox did not provide {} workspace file(s)", left->size()));
  }
  return {};
}

Result<void> InterpreterServer::boot(Run& run, std::string note) {
  auto session = engine_->boot({.workspace = mirror_, .cwd = run.row.cwd});
  if (!session.ok()) return engine_failed(session.error());
  SW_TRY(snapshot::Live live,
         contexts_->snapshots().begin(run.args.context_id, engine_->info().build));
  run.resident = std::make_unique<Resident>(Resident{
      .context = run.args.context_id, .live = std::move(live), .session = *std::move(session)});
  run.response.state = ContextState::kFresh;
  add(run.response.note, note);
  return {};
}

Result<void> InterpreterServer::restore(Run& run, const snapshot::VersionInfo& version) {
  StoredMemory stored(contexts_->snapshots(), run.args.context_id, version);
  auto session = engine_->restore({.workspace = mirror_, .cwd = run.row.cwd}, stored);
  if (!session.ok()) {
    return engine_failed(std::move(session).error().while_doing(fmt::format(
        "restoring context '{}' (undo its last run, go back to a checkpoint, or delete it)",
        run.args.context_id)));
  }
  auto live = stored.take_live();
  if (!live) return engine_failed({.message = "it restored a context without reading its memory"});
  run.resident = std::make_unique<Resident>(Resident{
      .context = run.args.context_id, .live = *std::move(live), .session = *std::move(session)});
  run.response.state = ContextState::kRestored;
  if (run.row.stale()) {
    add(run.response.note,
        fmt::format(
            "stale: the memory is that of run {}; what was done up to run {} could not be saved",
            *run.row.saved_execution, run.row.executions));
  }
  return {};
}

Result<void> InterpreterServer::ensure_instance(Run& run) {
  const std::string& id = run.args.context_id;
  run.resident = tenant_.take(id);
  if (run.resident && run.resident->session->invalid()) run.resident.reset();
  if (run.resident) {
    run.response.state = ContextState::kLive;
    return {};
  }
  if (!engine_->has_sessions())
    return Error{ErrorCode::kBadReply, "This engine has no session support", 0};
  if (!contexts_->has_memory(id)) {
    return boot(run, run.row.executions == 0 ? std::string(runtime::kNewContextNote)
                                             : "no run of the context is saved, so it begins anew");
  }
  SW_TRY(const snapshot::VersionInfo version, contexts_->newest(id));
  if (version.build != engine_->info().build) {
    return boot(
        run,
        fmt::format("the saved memory belongs to another build ({}); it stays until a run of this "
                    "build is saved",
                    version.build));
  }
  return restore(run, version);
}

void InterpreterServer::execute(Run& run) {
  Run request;
  request.code = run.args.code;
  request.language = run.args.alias;
  // An instance counts its own cells, and does not know of those that were run elsewhere or thrown
  // away.
  request.file_name = run.args.file_name.empty() ? fmt::format("<cell {}>", run.row.executions + 1)
                                                 : run.args.file_name;
  request.env = run.args.env;
  request.args = run.args.args;
  request.stdin_data = run.args.stdin_data;
  request.limits = run.args.limits;
  request.cancel = run.args.cancel;
  request.workspace = mirror_;
  if (run.response.state == ContextState::kFresh) request.cwd = run.row.cwd;
  run.files_before = mirror_->remember();

  auto outcome = run.resident->session->execute(request, run.output);
  Outcome& result = run.response.outcome;
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
  const Outcome& result = run.response.outcome;
  ContextRow& row = run.row;
  row.before = ContextRow::Before{.cwd = row.cwd, .saved_execution = row.saved_execution};
  ++row.executions;
  row.last_used_ms = contexts_->now_ms();
  const auto after_error =
      is_error(result.ending) ? run.args.after_error : runtime::AfterError::kKeep;
  if (after_error == runtime::AfterError::kRollback) {
    roll_back(run);
  } else if (!run.resident) {
    put_files_back(run);
    add(run.response.note, "the memory of this run was not saved, and its files were put back");
  } else {
    if (!result.cwd.empty()) row.cwd = folder_told(result.cwd);
    if (after_error == runtime::AfterError::kFilesBack) put_files_back(run);
  }
}

/// A context's folder as others are told of it: one that exists in /workspace, wherever the guest
/// really is.
std::string InterpreterServer::folder_told(const std::string& reported) const {
  const auto path = Workspace::normalize(reported);
  const auto entry = path.ok() ? mirror_->stat(*path) : Result<WorkspaceEntry>(path.error());
  const bool is_folder = entry.ok() && entry->type == wasi::FileType::kDirectory;
  return is_folder ? *path : std::string(runtime::kWorkspacePath);
}

void InterpreterServer::roll_back(Run& run) {
  ContextRow& row = run.row;
  run.resident.reset();  // the next run begins from what is saved
  put_files_back(run);
  if (!contexts_->has_memory(run.args.context_id)) {
    add(run.response.note,
        "rolled back: no run of the context is saved, so the next one begins anew");
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
Result<void> InterpreterServer::store(Run& run) {
  if (run.resident && run.resident->session->can_snapshot()) return save(run);
  if (run.resident) {
    // How much it holds is known exactly only when it is saved.
    if (run.resident->bytes == 0) run.resident->bytes = run.response.outcome.usage.memory_bytes;
    add(run.response.note, "the memory of this run was not saved");
  }
  auto written = contexts_->write(run.args.context_id, run.row);
  if (!written.ok()) run.resident.reset();  // its memory is of a run that nobody will hear of
  return written;
}

Result<void> InterpreterServer::save(Run& run) {
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
    const bool cannot_be_saved =
        code == ErrorCode::kInvalidArgument || code == ErrorCode::kLimitExceeded;
    if (cannot_be_saved && contexts_->write(run.args.context_id, run.row).ok()) {
      add(run.response.note, "stale: the memory could not be saved: " + saved.error().message);
      return {};
    }
    run.resident.reset();
    return std::move(saved).error().while_doing("storing the run");
  }
  using Milliseconds = std::chrono::duration<double, std::milli>;
  run.response.snapshot_ms = Milliseconds(std::chrono::steady_clock::now() - begin).count();
  run.response.snapshot_bytes_written = saved->bytes_written;
  run.resident->bytes = run.resident->live.bookkeeping_bytes();
  for (const ByteRange& range : state->changed) run.resident->bytes += range.end - range.begin;
  return {};
}

Result<ExecuteResponse> InterpreterServer::answer(Run& run) {
  ExecuteResponse& response = run.response;
  response.executions = run.row.executions;
  response.cwd = run.row.cwd;
  if (response.snapshot_ms) {
    SW_TRY(response.snapshot, contexts_->snapshot_info(run.resident->live, run.row));
  } else {
    SW_TRY(response.snapshot, contexts_->snapshot_info(run.args.context_id, run.row));
  }
  response.workspace = run.files_are_back ? workspace_diff(run.files_before, run.files_before)
                                          : mirror_->changes_since(run.files_before);
  return std::move(response);
}

// --- contexts and their versions

Result<ContextInfo> InterpreterServer::info_of(std::string_view id, const ContextRow& row) {
  ContextInfo info{.id = std::string(id),
                   .cwd = row.cwd,
                   .created_ms = row.created_ms,
                   .last_used_ms = row.last_used_ms,
                   .executions = row.executions,
                   .resident = tenant_.has(id)};
  SW_TRY(info.snapshot, contexts_->snapshot_info(id, row));
  return info;
}

Result<ContextInfo> InterpreterServer::create(std::string_view id, std::string_view cwd) {
  const auto working = tenant_.work();
  SW_CHECK_OK(contexts_->ensure_metadata());
  SW_CHECK_OK(runtime::check_context_id(id));
  const auto folder = Workspace::normalize(cwd);
  if (!folder.ok()) return runtime::refusal(fmt::format("Path escapes /workspace: {}", cwd));
  SW_TRY(const ContextRow row, contexts_->create(id, *folder));
  return info_of(id, row);
}

Result<std::vector<ContextInfo>> InterpreterServer::contexts() {
  const auto working = tenant_.work();
  SW_CHECK_OK(contexts_->ensure_metadata());
  SW_TRY(const Contexts::Rows rows, contexts_->list());
  std::vector<ContextInfo> contexts;
  for (const auto& [id, row] : rows) {
    SW_TRY(contexts.emplace_back(), info_of(id, row));
  }
  return contexts;
}

Result<ContextInfo> InterpreterServer::context(std::string_view id) {
  const auto working = tenant_.work();
  SW_TRY(const ContextRow row, contexts_->existing(id));
  return info_of(id, row);
}

Result<void> InterpreterServer::remove(std::string_view id) {
  const auto working = tenant_.work();
  SW_TRY(const ContextRow row, contexts_->existing(id));
  tenant_.drop(id);
  return contexts_->remove(id);
}

Result<ContextInfo> InterpreterServer::rewound(std::string_view id, const Result<ContextRow>& row) {
  if (!row.ok()) return refused_or<ContextInfo>(row.error());
  tenant_.drop(id);
  return info_of(id, *row);
}

Result<ContextInfo> InterpreterServer::fork(std::string_view id, std::string_view new_id) {
  const auto working = tenant_.work();
  SW_TRY(const ContextRow row, refused_or(contexts_->fork(id, new_id)));
  return info_of(new_id, row);
}

Result<ContextInfo> InterpreterServer::undo(std::string_view id, std::uint32_t runs) {
  const auto working = tenant_.work();
  return rewound(id, contexts_->undo(id, runs));
}

Result<ContextInfo> InterpreterServer::restore_checkpoint(std::string_view id,
                                                          std::string_view name) {
  const auto working = tenant_.work();
  return rewound(id, contexts_->restore_checkpoint(id, name));
}

Result<Checkpoint> InterpreterServer::add_checkpoint(std::string_view id, std::string_view name) {
  const auto working = tenant_.work();
  SW_TRY(const auto added, refused_or(contexts_->add_checkpoint(id, name)));
  return Checkpoint{.name = added.label, .taken_at_ms = added.time_ms};
}

Result<std::vector<Checkpoint>> InterpreterServer::checkpoints(std::string_view id) {
  const auto working = tenant_.work();
  SW_TRY(const auto known, contexts_->checkpoints(id));
  std::vector<Checkpoint> checkpoints;
  for (const snapshot::CheckpointInfo& one : known) {
    checkpoints.push_back({.name = one.label, .taken_at_ms = one.time_ms});
  }
  return checkpoints;
}

Result<void> InterpreterServer::remove_checkpoint(std::string_view id, std::string_view name) {
  const auto working = tenant_.work();
  return contexts_->remove_checkpoint(id, name);
}

}  // namespace sw::interpreter
