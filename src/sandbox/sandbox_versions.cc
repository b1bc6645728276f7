// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Versions of contexts' memory, and of the files that go along.

#include <fmt/format.h>

#include <utility>

#include "sandbox/execution.h"
#include "sandbox/names.h"
#include "sandbox/sandbox.h"
#include "sandbox_workers/protocol/answers.h"

namespace sw::sandbox {

namespace {

/// What an Interpreter says of a context after something other than a run.
void take_over_versions(ContextRecord& record, const protocol::ContextInfo& said) {
  record.interpreter_executions = said.executions;
  record.snapshot = said.snapshot;
  if (const auto cwd = Workspace::normalize(said.cwd); cwd.ok()) record.cwd = *cwd;
}

Error files_not_kept(const std::string& context, std::optional<std::uint64_t> step,
                     std::optional<std::uint64_t> first) {
  const std::string kept = first ? fmt::format("that is kept from step {} on", *first)
                                 : std::string("that is kept of none of its steps");
  return Error{ErrorCode::kNotFound,
               step ? fmt::format("Code context '{}': how the files were after step {} is not "
                                  "kept; {}",
                                  context, *step, kept)
                    : fmt::format("Code context '{}': it is not known which step its memory is "
                                  "of, so the files cannot be put back",
                                  context)};
}

}  // namespace

// --- what comes of a change

bool Sandbox::JointChange::can_join(const storage::ObjectStorage& interpreter) const {
  const MutexLock lock(sandbox_.mutex_);
  return sandbox_.storage_.is_beside(interpreter);
}

Result<void> Sandbox::JointChange::commit(const protocol::ContextInfo& answer,
                                          storage::ObjectStorage& interpreter,
                                          const storage::TransactionBody& body) {
  const MutexLock lock(sandbox_.mutex_);
  const Interpreters with{interpreter, body};
  return sandbox_.take_over(change_, answer, &with);
}

Result<void> Sandbox::look_at_files(VersionChange& change, std::optional<std::uint64_t> step) {
  if (!parts_.options.file_api && !change.options.files) return {};
  SW_CHECK_OK(usable_files());
  const FileLog& log = store_->log();
  const auto state = step ? log.state_after({change.steps_of, *step}) : std::nullopt;
  if (!change.options.files) {
    if (state) change.files = store_->differences_to(*state);
    return {};
  }
  if (!state) return files_not_kept(change.steps_of, step, log.first_step(change.steps_of));
  auto put_back = store_->put_back(storage_, *state, now_ns());
  if (put_back.ok()) {
    change.files = *std::move(put_back);
    return {};
  }
  forget();  // some of it may be in the tree
  return std::move(put_back).error();
}

Result<void> Sandbox::take_over(VersionChange& change, const protocol::ContextInfo& said,
                                const Interpreters* with) {
  SW_CHECK_OK(load());
  ContextRecord& context = change.context;
  take_over_versions(context, said);
  Step step{.files = change.options.files, .context = &context, .used = true, .with = with};
  if (change.is_fork()) {
    context.executions = said.executions;
    context.number = new_record({}).number;  // others may have made contexts meanwhile
    if (said.step) step.forked = ContextStep{change.steps_of, *said.step};
  }
  SW_CHECK_OK(look_at_files(change, said.step));
  change.files.step = said.step;
  SW_CHECK_OK(store(step));
  contexts_.insert_or_assign(context.id, context);
  change.taken_over = true;
  return {};
}

/// Has an Interpreter change the memory of a context, and stores what comes of it: together with what
/// the Interpreter does, if that is in the same storage, and otherwise afterwards. If the process ends
/// in between, memory is of the version and files are as they were.
Result<void> Sandbox::change(VersionChange& change, const ChangeQuestion& question) {
  JointChange joint(*this, change);
  SW_TRY(const protocol::ContextInfo said,
         ask(change.context,
             [&](protocol::Interpreter& interpreter) { return question(interpreter, joint); }));
  if (change.taken_over) return {};
  auto taken_over = take_over(change, said, nullptr);
  if (taken_over.ok() || !change.options.files) return taken_over;
  return std::move(taken_over).error().while_doing("the memory has gone back, but not the files");
}

// --- what can be asked

Result<Fork> Sandbox::fork(std::string_view id, const std::optional<std::string>& new_id,
                           const ContextVersion& from, const VersionOptions& options) {
  MutexLock lock(mutex_);
  const object::Turns::Turn turn(turns_, id, lock);
  SW_TRY(const ContextRecord* const found, find(id));
  const ContextRecord original = *found;
  SW_CHECK_OK(check_new_id(new_id));
  const object::Turns::Turn making(turns_, kNewContexts, lock);
  SW_CHECK_OK(load());
  SW_CHECK_OK(check_new_id(new_id));
  ContextRecord record = new_record(new_id.value_or(new_context_id()));
  record.binding = original.binding;
  record.language = original.language;
  record.engine = original.engine;
  record.env = original.env;
  record.durability = original.durability;
  VersionChange forked{.context = record, .steps_of = original.id, .options = options};
  SW_CHECK_OK(change(forked, [&](protocol::Interpreter& interpreter, protocol::JointChange& joint) {
    return make_anew(interpreter, record.id, new_id.has_value(),
                     [&] { return interpreter.fork(original.id, record.id, from, &joint); });
  }));
  return Fork{.context = std::move(forked.context), .files = std::move(forked.files)};
}

Result<VersionFiles> Sandbox::rewind(std::string_view id, const VersionOptions& options,
                                     const ChangeQuestion& question) {
  MutexLock lock(mutex_);
  const object::Turns::Turn turn(turns_, id, lock);
  SW_TRY(const ContextRecord* const found, find(id));
  VersionChange rewound{.context = *found, .options = options};
  SW_CHECK_OK(change(rewound, question));
  return std::move(rewound.files);
}

Result<VersionFiles> Sandbox::undo(std::string_view id, std::uint32_t runs,
                                   const VersionOptions& options) {
  if (runs == 0) return protocol::refusal("runs must be at least 1");
  return rewind(id, options, [&](protocol::Interpreter& interpreter, protocol::JointChange& joint) {
    return interpreter.undo(id, runs, &joint);
  });
}

Result<VersionFiles> Sandbox::restore(std::string_view id, const ContextVersion& version,
                                      const VersionOptions& options) {
  return rewind(id, options, [&](protocol::Interpreter& interpreter, protocol::JointChange& joint) {
    return interpreter.restore(id, version, &joint);
  });
}

/// Has the Interpreter change what is kept of a context, and notes what it says.
Result<void> Sandbox::change_checkpoints(std::string_view id, const Question& question) {
  MutexLock lock(mutex_);
  const object::Turns::Turn turn(turns_, id, lock);
  SW_TRY(const ContextRecord* const found, find(id));
  ContextRecord context = *found;
  SW_TRY(const protocol::ContextInfo said, ask(context, question));
  SW_CHECK_OK(load());
  take_over_versions(context, said);
  SW_CHECK_OK(store({.context = &context, .used = true}));
  contexts_.insert_or_assign(context.id, std::move(context));
  return {};
}

Result<void> Sandbox::add_checkpoint(std::string_view id, std::string_view name) {
  return change_checkpoints(
      id, [&](protocol::Interpreter& interpreter) -> Result<protocol::ContextInfo> {
        SW_CHECK_OK(interpreter.add_checkpoint(id, name));
        return interpreter.context(id);
      });
}

Result<void> Sandbox::remove_checkpoint(std::string_view id, std::string_view name) {
  return change_checkpoints(
      id, [&](protocol::Interpreter& interpreter) -> Result<protocol::ContextInfo> {
        SW_CHECK_OK(interpreter.remove_checkpoint(id, name));
        return interpreter.context(id);
      });
}

/// Asks for something that changes nothing.
Result<void> Sandbox::look_at(std::string_view id, const Look& look) {
  const MutexLock lock(mutex_);
  SW_TRY(const ContextRecord* const found, find(id));
  const ContextRecord context = *found;
  SW_CHECK_OK(
      ask(context, [&](protocol::Interpreter& interpreter) -> Result<protocol::ContextInfo> {
        SW_CHECK_OK(look(interpreter));
        return protocol::ContextInfo{};
      }));
  SW_CHECK_OK(load());
  return store({.used = true});
}

Result<std::vector<protocol::Checkpoint>> Sandbox::checkpoints(std::string_view id) {
  std::vector<protocol::Checkpoint> known;
  SW_CHECK_OK(look_at(id, [&](protocol::Interpreter& interpreter) -> Result<void> {
    SW_TRY(known, interpreter.checkpoints(id));
    return {};
  }));
  return known;
}

Result<std::vector<protocol::HistoryEntry>> Sandbox::history(std::string_view id) {
  std::vector<protocol::HistoryEntry> known;
  SW_CHECK_OK(look_at(id, [&](protocol::Interpreter& interpreter) -> Result<void> {
    SW_TRY(known, interpreter.history(id));
    return {};
  }));
  return known;
}

}  // namespace sw::sandbox
