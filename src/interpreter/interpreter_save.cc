// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What is kept of a run: the decision, and its one commit.

#include <fmt/format.h>

#include <chrono>

#include "interpreter/execution.h"
#include "interpreter/step_about.h"
#include "protocol/joint_commit.h"
#include "sandbox_workers/workspace/workspace.h"

namespace sw::interpreter {

using protocol::ExecuteResponse;

namespace {

/// A context's folder as others are told of it: one that exists in /workspace, wherever the guest
/// really is.
std::string folder_told(const RunFiles& files, const WorkspaceDiff& diff,
                        const std::string& reported) {
  const auto path = Workspace::normalize(reported);
  return path.ok() && is_folder(files, diff, *path) ? *path : std::string(protocol::kWorkspacePath);
}

}  // namespace

/// Decides what is kept of a run: the table in the header.
void Interpreter::decide(Execution& run) {
  const Outcome& result = run.response.outcome;
  ContextRow& row = run.row;
  row.before = ContextRow::Before{.cwd = row.cwd, .saved_execution = row.saved_execution};
  ++row.executions;
  row.last_used_ms = contexts_->now_ms();
  const auto after_error = is_error(result.ending)
                               ? run.args.run.on_error.value_or(AfterError::kKeep)
                               : AfterError::kKeep;
  if (after_error == AfterError::kRollback) {
    roll_back(run);
  } else if (!run.resident) {
    run.put_files_back();
    run.note("the memory of this run was not saved, and its files were rolled back");
  } else {
    if (after_error == AfterError::kFilesBack) run.put_files_back();
    if (!result.cwd.empty()) {
      row.cwd = folder_told(*run.args.run.files, *result.files, result.cwd);
    }
  }
}

void Interpreter::roll_back(Execution& run) {
  ContextRow& row = run.row;
  run.resident.reset();  // the next run begins from what is saved
  run.put_files_back();
  if (!contexts_->has_memory(run.id())) {
    run.note("rolled back: no run of the context is saved, so the next one starts fresh");
  } else if (row.saved_execution == row.executions - 1) {
    row.saved_execution = row.executions;
    row.before->rolled_back = true;
    run.note("rolled back: memory and files are as before this run");
  } else {
    run.note(
        fmt::format("rolled back: files are as before this run, but the memory is that of run {}, "
                    "the last one that was saved",
                    row.saved_execution.value_or(0)));
  }
}

/// Stores what the run did; its memory too, if the rules say so.
Result<void> Interpreter::store(Execution& run) {
  run.told().id = run.id();
  run.told().executions = run.row.executions;
  run.response.outcome.cwd = run.row.cwd;
  if (run.resident && run.resident->session->can_snapshot()) return save(run);
  if (run.resident) {
    // How much it holds is known exactly only when it is saved.
    if (run.resident->bytes == 0) run.resident->bytes = run.response.outcome.usage.memory_bytes;
    run.note("the memory of this run was not saved");
  }
  return write(run);
}

Result<void> Interpreter::write(Execution& run) {
  SW_TRY(run.response.snapshot, contexts_->snapshot_info(run.id(), run.row));
  auto written = contexts_->write(run.id(), run.row,
                                  [&](const snapshot::SaveStats&, const auto& body)
                                      SW_REQUIRES(mutex_) { return commit(run, body); });
  if (!written.ok()) run.resident.reset();  // its memory is of a run that nobody will hear of
  return written;
}

/// Needs nothing that is shared, so that others of the contexts go on meanwhile.
Result<snapshot::EncodedStep> Interpreter::encode(Execution& run) {
  SW_TRY(run.memory, run.resident->session->snapshot());
  add_ranges(run.resident->unsaved, run.memory.changed);
  const std::string about = about_step(run.args.run.code, *run.response.outcome.files);
  return run.resident->live->encode({.memory = *run.memory.memory,
                                     .image = run.memory.base,
                                     .changed = run.resident->unsaved,
                                     .host_tables = run.memory.extra,
                                     .time_ms = run.row.last_used_ms,
                                     .number = run.row.executions,
                                     .about = about});
}

Result<void> Interpreter::save(Execution& run) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  const auto begin = std::chrono::steady_clock::now();
  const snapshot::Commit commit_saved =
      [&](const snapshot::SaveStats& saved, const storage::TransactionBody& body)
          SW_REQUIRES(mutex_) -> Result<void> {
    SW_TRY(run.response.snapshot, contexts_->snapshot_info(*run.resident->live, saved));
    run.told().snapshot_ms = Milliseconds(std::chrono::steady_clock::now() - begin).count();
    run.told().snapshot_bytes_written = saved.bytes_written;
    return commit(run, body);
  };
  auto encoded = [&] {
    const Unlocked unlocked(mutex_);
    return encode(run);
  }();
  Result<snapshot::SaveStats> saved =
      encoded.ok() ? contexts_->save(*run.resident->live, *std::move(encoded), run.id(), run.row,
                                     commit_saved)
                   : Result<snapshot::SaveStats>(std::move(encoded).error());
  if (!saved.ok()) {
    const ErrorCode code = saved.error().code;
    const bool cannot_be_saved =
        code == ErrorCode::kInvalidArgument || code == ErrorCode::kLimitExceeded;
    run.told().snapshot_ms.reset();
    if (cannot_be_saved && write(run).ok()) {
      run.note("stale: the memory could not be saved: " + saved.error().message);
      return {};
    }
    run.resident.reset();
    return std::move(saved).error().while_doing("storing the run");
  }
  run.resident->unsaved.clear();
  const snapshot::LiveMemory& live = *run.resident->live;
  // About: a page that holds again what it began with takes memory, too.
  run.resident->bytes =
      live.bookkeeping_bytes() + (live.stored_pages() - live.unread_pages()) * kPageBytes;
  return {};
}

/// The answer is complete: it is stored together with it, or by itself.
Result<void> Interpreter::commit(Execution& run, const storage::TransactionBody& body) {
  storage::ObjectStorage& storage = contexts_->storage();
  protocol::JointCommit<ExecuteResponse>* const joint = run.args.joint;
  if (joint && joint->can_join(storage)) return joint->commit(run.response, storage, body);
  const Durability durability = run.args.run.durability.value_or(Durability::kCommit);
  return storage.transact(body, {.durability = durability});
}

}  // namespace sw::interpreter
