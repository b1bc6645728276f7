// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// A store's versions: the history, going back, forks, checkpoints.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "snapshot/store_state.h"

namespace sw::snapshot {

Result<std::vector<HistoryEntry>> SnapshotStore::history(std::string_view context) {
  SW_TRY(ContextEntry* const record, state_->find(context));
  SW_TRY(const auto rows, state_->read_history(*record));
  std::map<std::uint64_t, HistoryEntry> steps;
  for (const auto& [kept, about] : rows) {
    HistoryEntry& entry = steps[kept.step];
    // A copy stands for a step that is not kept itself.
    if (!entry.version || !kept.copy) {
      entry.version = kept.id;
      entry.step = kept.step;
      entry.time_ms = kept.time_ms;
      entry.bytes = kept.bytes;
      entry.about = about;
    }
    entry.newest = kept.step == record->newest.step;
    for (const CheckpointInfo& checkpoint : record->checkpoints) {
      if (checkpoint.version == kept.id) entry.checkpoints.push_back(checkpoint.label);
    }
  }
  std::vector<HistoryEntry> entries;
  for (auto& [step, entry] : steps) entries.push_back(std::move(entry));
  return entries;
}

Result<void> SnapshotStore::forget_history(std::string_view context) {
  SW_TRY(ContextEntry* const record, state_->find(context));
  SW_CHECK_OK(state_->load_kept(*record));
  std::vector<KeptVersion> kept;
  for (const KeptVersion& version : *record->kept) {
    const bool stays = version.id == record->newest.id || State::is_checkpoint(*record, version.id);
    if (stays) kept.push_back(version);
    else record->leaving.push_back(version.id);
  }
  record->kept = std::move(kept);
  return state_->collect_family(record->family, CollectionBudget{});
}

Result<VersionId> SnapshotStore::version_of_step(std::string_view context, std::uint64_t step) {
  SW_TRY(ContextEntry* const record, state_->find(context));
  SW_CHECK_OK(state_->load_kept(*record));
  const KeptVersion* found = nullptr;
  for (const KeptVersion& kept : *record->kept) {
    if (kept.step == step && (found == nullptr || !kept.copy)) found = &kept;
  }
  if (found != nullptr) return found->id;
  return Error{ErrorCode::kNotFound, fmt::format("step {} is not kept; those that are: {}", step,
                                                 steps_of(*record->kept))};
}

Result<VersionInfo> SnapshotStore::undo(std::string_view context, std::uint32_t runs,
                                        std::int64_t time_ms, const ExtraWrites& extra_writes,
                                        const CommitVersion& commit) {
  SW_TRY(ContextEntry* const record, state_->find(context));
  SW_CHECK_OK(state_->load_kept(*record));
  KeptVersion target = record->newest;
  for (std::uint32_t i = 0; i < runs; ++i) {
    const auto parent = std::ranges::find(*record->kept, target.parent, &KeptVersion::id);
    if (parent == record->kept->end()) {
      return invalid(fmt::format("cannot undo {} runs; at most {} can be. Steps that are kept: {}",
                                 runs, i, steps_of(*record->kept)));
    }
    target = *parent;
  }
  return state_->go_back(*record, target, target.parent, std::nullopt, time_ms, extra_writes,
                         commit);
}

Result<VersionInfo> SnapshotStore::take_back(std::string_view context, std::int64_t time_ms,
                                             const ExtraWrites& extra_writes) {
  SW_TRY(ContextEntry* const record, state_->find(context));
  SW_TRY(const KeptVersion target, state_->kept_of(*record, record->newest.parent));
  const VersionId newest = record->newest.id;
  const bool stays = state_->is_checkpoint(*record, newest);
  return state_->go_back(*record, target, target.parent,
                         stays ? std::nullopt : std::optional(newest), time_ms, extra_writes, {});
}

Result<VersionInfo> SnapshotStore::rewind(std::string_view context, VersionId version,
                                          std::int64_t time_ms, const ExtraWrites& extra_writes,
                                          const CommitVersion& commit) {
  SW_TRY(ContextEntry* const record, state_->find(context));
  SW_TRY(const KeptVersion target, state_->kept_of(*record, version));
  return state_->go_back(*record, target, record->newest.id, std::nullopt, time_ms, extra_writes,
                         commit);
}

Result<VersionInfo> SnapshotStore::fork(std::string_view context, std::optional<VersionId> version,
                                        std::string_view new_context, std::int64_t time_ms,
                                        const ExtraWrites& extra_writes,
                                        const CommitVersion& commit) {
  State& s = *state_;
  SW_CHECK_OK(check_context_name(new_context));
  SW_CHECK_OK(s.refresh());
  if (has(new_context)) return invalid(fmt::format("context \"{}\" already exists", new_context));
  SW_TRY(ContextEntry* const source, s.find(context));
  SW_TRY(const KeptVersion from, s.kept_of(*source, version.value_or(source->newest.id)));
  SW_TRY(Version copy, s.version_of(*source, from.id));
  SW_TRY(const auto history, s.read_history(*source));
  // Its sequence goes on where the source's is, since references lead to smaller numbers only.
  ContextEntry forked = new_entry(s.next_owner, source->family, source->next_sequence);
  Addition addition{.version = from};
  addition.version.time_ms = time_ms;
  SW_TRY(addition.about, s.about_of(*source, from.id));
  SW_TRY(const VersionInfo info,
         s.append_version(
             forked, std::move(copy), std::move(addition), extra_writes, commit,
             [&](storage::Transaction& transaction) -> Result<void> {
               SW_CHECK_OK(put_next_owner(transaction, s.options.contexts_table, s.next_owner + 1));
               for (const auto& [kept, about] : history) {
                 if (kept.id.sequence > from.id.sequence || kept.step > from.step) continue;
                 SW_CHECK_OK(s.write(transaction, forked, {.version = kept, .about = about}));
               }
               return put_context(transaction, s.options.contexts_table, new_context, forked);
             }));
  ++s.next_owner;
  s.contexts.emplace(new_context, std::move(forked));
  return info;
}

Result<VersionInfo> SnapshotStore::add_checkpoint(std::string_view context, std::string_view label,
                                                  std::int64_t time_ms,
                                                  const ExtraWrites& extra_writes) {
  if (label.empty() || label.size() > kLabelBytesMax) {
    return invalid(fmt::format("a checkpoint's label must have 1 to {} bytes", kLabelBytesMax));
  }
  SW_TRY(const ContextEntry* const record, state_->find(context));
  std::vector<CheckpointInfo> checkpoints = record->checkpoints;
  if (std::ranges::find(checkpoints, label, &CheckpointInfo::label) != checkpoints.end()) {
    return invalid(fmt::format("checkpoint \"{}\" already exists", label));
  }
  if (checkpoints.size() >= state_->options.checkpoints_max) {
    return Error{ErrorCode::kLimitExceeded, fmt::format("a context can have at most {} checkpoints",
                                                        state_->options.checkpoints_max)};
  }
  SW_TRY(const Version version, state_->version_of(*record, record->newest.id));
  checkpoints.push_back({std::string(label), record->newest.id, time_ms});
  SW_CHECK_OK(state_->change_checkpoints(context, std::move(checkpoints), extra_writes));
  return info_of(record->newest, version);
}

Result<std::vector<CheckpointInfo>> SnapshotStore::checkpoints(std::string_view context) const {
  SW_TRY(const ContextEntry* const record, state_->find(context));
  return record->checkpoints;
}

Result<void> SnapshotStore::remove_checkpoint(std::string_view context, std::string_view label,
                                              const ExtraWrites& extra_writes) {
  SW_TRY(const ContextEntry* const record, state_->find(context));
  std::vector<CheckpointInfo> checkpoints = record->checkpoints;
  if (std::erase_if(checkpoints, [&](const CheckpointInfo& c) { return c.label == label; }) == 0) {
    return not_found("checkpoint", label);
  }
  return state_->change_checkpoints(context, std::move(checkpoints), extra_writes);
}

}  // namespace sw::snapshot
