// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// An Interpreter's contexts and the versions of their memory.

#include <fmt/format.h>

#include "interpreter/interpreter.h"
#include "protocol/joint_commit.h"
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

/// Zero for a checkpoint of an earlier version of this program.
std::optional<std::uint64_t> step_of(const snapshot::VersionInfo& version) {
  return version.step == 0 ? std::nullopt : std::optional(version.step);
}

}  // namespace

ContextInfo Interpreter::row_info(std::string_view id, const ContextRow& row) {
  return {.id = std::string(id),
          .cwd = row.cwd,
          .created_ms = row.created_ms,
          .last_used_ms = row.last_used_ms,
          .executions = row.executions,
          .resident = pool_.has(this, id)};
}

Result<ContextInfo> Interpreter::info_of(std::string_view id, const ContextRow& row) {
  ContextInfo info = row_info(id, row);
  if (!contexts_->has_memory(id)) return info;
  SW_TRY(const snapshot::VersionInfo version, contexts_->newest(id));
  SW_TRY(info.snapshot, contexts_->snapshot_info(id, row, version));
  info.step = step_of(version);
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

/// Stores a change together with what the Sandbox does, or by itself.
Result<void> Interpreter::commit(protocol::JointChange* joint, ContextInfo changed,
                                 const snapshot::VersionInfo* version, const ContextRow& row,
                                 const storage::TransactionBody& body) {
  storage::ObjectStorage& storage = contexts_->storage();
  if (!joint || !joint->can_join(storage)) return storage.transact(body);
  if (version) {
    SW_TRY(changed.snapshot, contexts_->snapshot_info(changed.id, row, *version));
    changed.step = step_of(*version);
  }
  return joint->commit(changed, storage, body);
}

Result<ContextInfo> Interpreter::change(std::string_view id, std::string_view changed,
                                        const Change& operation, protocol::JointChange* joint) {
  MutexLock lock(mutex_);
  const object::Turns::Turn turn(turns_, id, lock);
  const Contexts::Commit commit_it =
      [&](const ContextRow& row, const snapshot::VersionInfo* version,
          const storage::TransactionBody& body)
          SW_REQUIRES(mutex_) { return commit(joint, row_info(changed, row), version, row, body); };
  SW_TRY(const ContextRow row, refused_or(operation(*contexts_, commit_it)));
  (void)pool_.take(this, changed);
  return info_of(changed, row);
}

Result<ContextInfo> Interpreter::undo(std::string_view id, std::uint32_t runs,
                                      protocol::JointChange* joint) {
  const auto operation = [&](Contexts& contexts, const Contexts::Commit& commit) {
    return contexts.undo(id, runs, commit);
  };
  return change(id, id, operation, joint);
}

Result<ContextInfo> Interpreter::restore(std::string_view id, const ContextVersion& version,
                                         protocol::JointChange* joint) {
  const auto operation = [&](Contexts& contexts, const Contexts::Commit& commit) {
    return contexts.restore(id, version, commit);
  };
  return change(id, id, operation, joint);
}

Result<std::vector<protocol::HistoryEntry>> Interpreter::history(std::string_view id) {
  const MutexLock lock(mutex_);
  return contexts_->history(id);
}

Result<void> Interpreter::forget_history(std::string_view id) {
  MutexLock lock(mutex_);
  const object::Turns::Turn turn(turns_, id, lock);
  return contexts_->forget_history(id);
}

Result<ContextInfo> Interpreter::fork(std::string_view id, std::string_view new_id,
                                      const ContextVersion& from, protocol::JointChange* joint) {
  const auto operation = [&](Contexts& contexts, const Contexts::Commit& commit) {
    return contexts.fork(id, new_id, from, commit);
  };
  return change(id, new_id, operation, joint);
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
