// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Versions of contexts' memories.

#include <fmt/format.h>

#include <algorithm>

#include "interpreter/contexts.h"
#include "interpreter/step_about.h"
#include "sandbox_workers/base/utf8.h"
#include "sandbox_workers/protocol/answers.h"

namespace sw::interpreter {

/// A row whose memory is now that of another moment. What the runs since did to it is gone, and the
/// caller knows.
ContextRow Contexts::rewound(ContextRow row) {
  row.saved_execution = row.executions;
  row.saved_ms = now_ms();
  row.before.reset();
  return row;
}

Result<ContextRow> Contexts::with_memory(std::string_view id) {
  SW_TRY(ContextRow row, existing(id));
  if (!has_memory(id))
    return protocol::refusal(fmt::format("Code context '{}' has no saved memory yet", id));
  return row;
}

Result<snapshot::VersionInfo> Contexts::version(std::string_view id,
                                                const ContextVersion& version) {
  if (version.checkpoint()) {
    SW_TRY(const auto found, checkpoint(id, *version.checkpoint()));
    return snapshots_->version(id, found.version);
  }
  if (!version.step()) return newest(id);
  auto found = snapshots_->version_of_step(id, *version.step());
  if (found.ok()) return snapshots_->version(id, *found);
  Error error = std::move(found).error();
  if (error.code == ErrorCode::kNotFound)
    error.message = fmt::format("Code context '{}': {}", id, error.message);
  return error;
}

Result<std::vector<protocol::HistoryEntry>> Contexts::history(std::string_view id) {
  SW_TRY(const ContextRow row, existing(id));
  std::vector<protocol::HistoryEntry> entries;
  if (!has_memory(id)) return entries;
  SW_TRY(const auto known, snapshots_->history(id));
  for (const snapshot::HistoryEntry& one : known) {
    protocol::HistoryEntry& entry = entries.emplace_back(read_about(one.about));
    entry.step = one.step;
    entry.taken_at_ms = one.time_ms;
    entry.bytes = one.bytes;
    entry.current = one.newest;
    for (const std::string& label : one.checkpoints)
      entry.checkpoints.push_back(to_valid_utf8(label));
  }
  return entries;
}

snapshot::CommitVersion Contexts::with_row(const ContextRow& row, const Commit& commit) {
  if (!commit) return {};
  return [&](const snapshot::VersionInfo& version, const storage::TransactionBody& body) {
    return commit(row, &version, body);
  };
}

Result<void> Contexts::forget_history(std::string_view id) {
  SW_TRY(ContextRow row, existing(id));
  if (!has_memory(id)) return {};
  SW_CHECK_OK(snapshots_->forget_history(id));
  // What its last run could be taken back to is gone.
  row.before.reset();
  return use(writer_of(id, row));
}

Result<ContextRow> Contexts::fork(std::string_view id, std::string_view new_id,
                                  const ContextVersion& from, const Commit& commit) {
  const bool newest = !from.step() && !from.checkpoint();
  SW_TRY(ContextRow row, newest ? existing(id) : with_memory(id));
  SW_CHECK_OK(check_new(new_id));
  row.created_ms = row.last_used_ms = now_ms();
  row.executions = row.saved_execution.value_or(0);
  row.before.reset();
  if (!has_memory(id)) {
    const snapshot::ExtraWrites body = used(writer_of(new_id, row));
    SW_CHECK_OK(commit ? commit(row, nullptr, body) : storage_.transact(body));
    return row;
  }
  SW_TRY(const snapshot::VersionInfo version, this->version(id, from));
  if (!newest) row.saved_execution = row.executions = version.step;
  SW_CHECK_OK(snapshots_->fork(id, version.id, new_id, now_ms(), used(writer_of(new_id, row)),
                               with_row(row, commit)));
  return row;
}

Result<ContextRow> Contexts::restore(std::string_view id, const ContextVersion& version,
                                     const Commit& commit) {
  SW_TRY(ContextRow row, with_memory(id));
  SW_TRY(const snapshot::VersionInfo found, this->version(id, version));
  row = rewound(std::move(row));
  SW_CHECK_OK(
      snapshots_->rewind(id, found.id, now_ms(), used(writer_of(id, row)), with_row(row, commit)));
  return row;
}

Result<ContextRow> Contexts::undo(std::string_view id, std::uint32_t runs, const Commit& commit) {
  SW_TRY(ContextRow row, with_memory(id));
  row = rewound(std::move(row));
  SW_CHECK_OK(
      snapshots_->undo(id, runs, now_ms(), used(writer_of(id, row)), with_row(row, commit)));
  return row;
}

Result<snapshot::CheckpointInfo> Contexts::add_checkpoint(std::string_view id,
                                                          std::string_view name) {
  SW_TRY(const ContextRow row, with_memory(id));
  const std::int64_t now = now_ms();
  SW_TRY(const auto version, snapshots_->add_checkpoint(id, name, now, used()));
  return snapshot::CheckpointInfo{
      .label = std::string(name), .version = version.id, .time_ms = now};
}

Result<std::vector<snapshot::CheckpointInfo>> Contexts::checkpoints(std::string_view id) {
  SW_TRY(const ContextRow row, existing(id));
  if (!has_memory(id)) return std::vector<snapshot::CheckpointInfo>();
  return snapshots_->checkpoints(id);
}

Result<snapshot::CheckpointInfo> Contexts::checkpoint(std::string_view id, std::string_view name) {
  SW_TRY(const auto known, checkpoints(id));
  const auto found = std::ranges::find(known, name, &snapshot::CheckpointInfo::label);
  if (found == known.end()) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("Code context '{}' has no checkpoint '{}'", id, name), 0};
  }
  return *found;
}

Result<void> Contexts::remove_checkpoint(std::string_view id, std::string_view name) {
  SW_TRY(const auto found, checkpoint(id, name));
  return snapshots_->remove_checkpoint(id, name, used());
}

namespace {

protocol::SnapshotInfo info_of(std::string build, std::uint64_t pages,
                               const snapshot::StorageUsage& usage, std::int64_t taken_at_ms,
                               const ContextRow& row) {
  return {.build = std::move(build),
          .pages = pages,
          .bytes = pages * 4096,
          .stored_bytes = usage.bytes,
          .taken_at_ms = taken_at_ms,
          .stale = row.stale()};
}

}  // namespace

Result<std::optional<protocol::SnapshotInfo>> Contexts::snapshot_info(std::string_view id,
                                                                      const ContextRow& row) {
  if (!has_memory(id)) return std::optional<protocol::SnapshotInfo>();
  SW_TRY(const snapshot::VersionInfo version, newest(id));
  SW_TRY(protocol::SnapshotInfo info, snapshot_info(id, row, version));
  return std::optional(std::move(info));
}

Result<protocol::SnapshotInfo> Contexts::snapshot_info(std::string_view id, const ContextRow& row,
                                                       const snapshot::VersionInfo& version) {
  snapshot::StorageUsage usage;
  if (has_memory(id)) {
    SW_TRY(usage, snapshots_->usage(id));
  }
  return info_of(version.build, version.pages, usage, version.time_ms, row);
}

Result<protocol::SnapshotInfo> Contexts::snapshot_info(const snapshot::LiveMemory& live,
                                                       const snapshot::SaveStats& saved) {
  snapshot::StorageUsage usage;
  if (has_memory(live.context())) {
    SW_TRY(usage, snapshots_->usage(live.context()));
  }
  usage.bytes += saved.bytes_written;
  return info_of(live.build(), saved.stored_pages, usage, saved.time_ms, {});
}

}  // namespace sw::interpreter
