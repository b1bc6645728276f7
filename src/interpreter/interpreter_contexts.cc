// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// An Interpreter's contexts and the versions of their memory.

#include <fmt/format.h>

#include "interpreter/interpreter.h"
#include "protocol/messages.h"
#include "sandbox_workers/protocol/answers.h"

namespace sw::interpreter {

using protocol::Checkpoint;
using protocol::ContextInfo;

namespace {

/// What a caller must not ask: too much of something is one, too.
template <class T>
Result<T> refused_or(Result<T> result) {
  if (result.ok() || result.error().code != ErrorCode::kLimitExceeded) return result;
  Error error = std::move(result).error();
  error.code = ErrorCode::kInvalidArgument;
  return error;
}

}  // namespace

Result<ContextInfo> Interpreter::info_of(std::string_view id, const ContextRow& row) {
  ContextInfo info{.id = std::string(id),
                   .cwd = row.cwd,
                   .created_ms = row.created_ms,
                   .last_used_ms = row.last_used_ms,
                   .executions = row.executions,
                   .resident = pool_.has(this, id)};
  SW_TRY(info.snapshot, contexts_->snapshot_info(id, row));
  return info;
}

Result<ContextInfo> Interpreter::create(std::string_view id, std::string_view cwd) {
  SW_CHECK_OK(protocol::check_context_id(id));
  const auto folder = Workspace::normalize(cwd);
  if (!folder.ok()) return protocol::refusal(fmt::format("Path escapes /workspace: {}", cwd));
  const MutexLock lock(mutex_);
  SW_CHECK_OK(contexts_->ensure_metadata());
  SW_TRY(const ContextRow row, contexts_->create(id, *folder));
  return info_of(id, row);
}

Result<std::vector<ContextInfo>> Interpreter::contexts() {
  const MutexLock lock(mutex_);
  SW_CHECK_OK(contexts_->ensure_metadata());
  SW_TRY(const Contexts::Rows rows, contexts_->list());
  std::vector<ContextInfo> contexts;
  for (const auto& [id, row] : rows) {
    SW_TRY(contexts.emplace_back(), info_of(id, row));
  }
  return contexts;
}

Result<ContextInfo> Interpreter::context(std::string_view id) {
  const MutexLock lock(mutex_);
  SW_TRY(const ContextRow row, contexts_->existing(id));
  return info_of(id, row);
}

Result<void> Interpreter::remove(std::string_view id) {
  MutexLock lock(mutex_);
  const object::Turns::Turn turn(turns_, id, lock);
  SW_TRY(const ContextRow row, contexts_->existing(id));
  (void)pool_.take(this, id);
  return contexts_->remove(id);
}

Result<ContextInfo> Interpreter::rewind(std::string_view id,
                                        const Operation<ContextRow>& operation) {
  MutexLock lock(mutex_);
  const object::Turns::Turn turn(turns_, id, lock);
  SW_TRY(const ContextRow row, refused_or(operation(*contexts_)));
  (void)pool_.take(this, id);
  return info_of(id, row);
}

Result<ContextInfo> Interpreter::undo(std::string_view id, std::uint32_t runs) {
  return rewind(id, [&](Contexts& contexts) { return contexts.undo(id, runs); });
}

Result<ContextInfo> Interpreter::restore(std::string_view id, const ContextVersion& version) {
  return rewind(id, [&](Contexts& contexts) { return contexts.restore(id, version); });
}

Result<std::vector<protocol::HistoryEntry>> Interpreter::history(std::string_view id) {
  const MutexLock lock(mutex_);
  return contexts_->history(id);
}

Result<ContextInfo> Interpreter::fork(std::string_view id, std::string_view new_id,
                                      const ContextVersion& from) {
  MutexLock lock(mutex_);
  const object::Turns::Turn turn(turns_, id, lock);
  SW_TRY(const ContextRow row, refused_or(contexts_->fork(id, new_id, from)));
  return info_of(new_id, row);
}

Result<Checkpoint> Interpreter::add_checkpoint(std::string_view id, std::string_view name) {
  MutexLock lock(mutex_);
  const object::Turns::Turn turn(turns_, id, lock);
  SW_TRY(const auto added, refused_or(contexts_->add_checkpoint(id, name)));
  return Checkpoint{.name = added.label, .taken_at_ms = added.time_ms};
}

Result<std::vector<Checkpoint>> Interpreter::checkpoints(std::string_view id) {
  const MutexLock lock(mutex_);
  SW_TRY(const auto known, contexts_->checkpoints(id));
  std::vector<Checkpoint> checkpoints;
  for (const snapshot::CheckpointInfo& one : known) {
    checkpoints.push_back({.name = one.label, .taken_at_ms = one.time_ms});
  }
  return checkpoints;
}

Result<void> Interpreter::remove_checkpoint(std::string_view id, std::string_view name) {
  const MutexLock lock(mutex_);
  return contexts_->remove_checkpoint(id, name);
}

}  // namespace sw::interpreter
