// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// A sandbox's contexts and the versions of their memory.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "protocol/messages.h"
#include "sandbox/names.h"
#include "sandbox/sandbox.h"
#include "sandbox_workers/protocol/answers.h"

namespace sw::sandbox {

namespace {

/// Has an Interpreter make a context. A name that the caller chose may have been left behind there
/// when we were interrupted before keeping it, or when the Interpreter could not be reached to
/// delete it.
Result<protocol::ContextInfo> make_anew(
    protocol::Interpreter& interpreter, std::string_view id, bool chosen,
    const std::function<Result<protocol::ContextInfo>()>& make) {
  auto made = make();
  if (made.ok() || !chosen || info_of(made.error().code).http_status >= 500) return made;
  (void)interpreter.remove(id);
  return make();
}

/// What an Interpreter says of a context after something other than a run.
void take_over_versions(ContextRecord& record, const protocol::ContextInfo& said) {
  record.interpreter_executions = said.executions;
  record.snapshot = said.snapshot;
  if (const auto cwd = Workspace::normalize(said.cwd); cwd.ok()) record.cwd = *cwd;
}

}  // namespace

std::vector<ContextRecord> Sandbox::by_age() const {
  std::vector<ContextRecord> records;
  for (const auto& [id, record] : contexts_) records.push_back(record);
  std::ranges::sort(records, {}, [](const ContextRecord& record) {
    return std::pair(record.created_ms, record.number);
  });
  return records;
}

Result<ContextRecord*> Sandbox::find(std::string_view id) {
  SW_CHECK_OK(load());
  const auto found = contexts_.find(id);
  if (found == contexts_.end()) return protocol::context_not_found(id);
  return &found->second;
}

ContextRecord* Sandbox::oldest_of(std::string_view binding) {
  for (const ContextRecord& record : by_age()) {
    if (record.binding == binding) return &contexts_.at(record.id);
  }
  return nullptr;
}

Result<std::vector<ContextRecord>> Sandbox::contexts() {
  const MutexLock lock(mutex_);
  SW_CHECK_OK(load());
  SW_CHECK_OK(store({.used = true}));
  return by_age();
}

Result<ContextRecord> Sandbox::context(std::string_view id) {
  const MutexLock lock(mutex_);
  SW_TRY(const ContextRecord* const context, find(id));
  return *context;
}

/// May there be another context, and of this name?
Result<void> Sandbox::check_new_id(const std::optional<std::string>& id) {
  if (id) SW_CHECK_OK(protocol::check_context_id(*id));
  if (id && contexts_.contains(*id)) {
    return protocol::refusal(fmt::format("Code context '{}' already exists", *id));
  }
  if (contexts_.size() < parts_.options.contexts_max) return {};
  return protocol::refusal(
      fmt::format("Cannot create more than {} code contexts", parts_.options.contexts_max));
}

Result<ContextRecord> Sandbox::create_context(const NewContext& wanted) {
  MutexLock lock(mutex_);
  SW_CHECK_OK(load());
  if (wanted.binding.empty()) return protocol::refusal("binding is required");
  if (wanted.id) SW_CHECK_OK(protocol::check_context_id(*wanted.id));
  const auto cwd = Workspace::normalize(wanted.cwd);
  if (!cwd.ok()) return protocol::refusal(cwd.error().message);
  for (const auto& [name, value] : wanted.env) SW_CHECK_OK(check_env(name, value));
  SW_CHECK_OK(check_new_id(wanted.id));
  SW_TRY(const Binding binding, Binding::find(parts_.bindings, wanted.binding));
  const auto info = probe(binding);
  if (!info.ok()) return info.error();
  if (!info->contexts) {
    return protocol::refusal(fmt::format("Code contexts are not supported by binding '{}' ({})",
                                         binding.name(), info->language));
  }
  NewContext normalized = wanted;
  normalized.cwd = *cwd;
  const object::Turns::Turn turn(turns_, kNewContexts, lock);
  SW_CHECK_OK(load());
  SW_CHECK_OK(check_new_id(wanted.id));
  return create(binding, *info, normalized);
}

ContextRecord Sandbox::new_record(std::string id) {
  ContextRecord record;
  record.id = std::move(id);
  for (const auto& [other, known] : contexts_) {
    record.number = std::max(record.number, known.number + 1);
  }
  record.created_ms = record.last_used_ms = now_ms();
  return record;
}

Result<ContextRecord> Sandbox::create(const Binding& binding, const protocol::WorkerInfo& info,
                                      const NewContext& wanted) {
  ContextRecord record = new_record(wanted.id.value_or(new_context_id()));
  record.binding = binding.name();
  record.language = info.language;
  record.engine = info.engine;
  record.cwd = wanted.cwd;
  record.env = wanted.env;
  record.durability = wanted.durability;
  record.interpreter_executions = 0;
  SW_CHECK_OK(ask(record, [&](protocol::Interpreter& interpreter) {
    return make_anew(interpreter, record.id, wanted.id.has_value(),
                     [&] { return interpreter.create(record.id, wanted.cwd); });
  }));
  return keep(std::move(record));
}

Result<ContextRecord> Sandbox::keep(ContextRecord record) {
  SW_CHECK_OK(load());
  // Others may have made contexts while the Interpreter was asked.
  record.number = new_record({}).number;
  SW_CHECK_OK(store({.context = &record, .used = true}));
  return contexts_.insert_or_assign(record.id, std::move(record)).first->second;
}

Result<protocol::WorkerInfo> Sandbox::probe(const Binding& binding) {
  const Unlocked unlocked(mutex_);
  return binding.probe();
}

/// Asks the Interpreter that has a context, or is to have it, something about it.
Result<protocol::ContextInfo> Sandbox::ask(const ContextRecord& context, const Question& question) {
  SW_TRY(const Binding binding, Binding::find(parts_.bindings, context.binding));
  const std::string key = key_;
  const Unlocked unlocked(mutex_);
  SW_TRY(const auto interpreter, binding.interpreter(key));
  return binding.answer(question(*interpreter));
}

Result<void> Sandbox::end_context(std::string_view id, std::chrono::nanoseconds wall_max,
                                  RunEvents& events) {
  Run run{.context = std::string(id), .ends_context = true, .limits = parts_.options.run_limits};
  run.limits.wall_max = wall_max;
  run.limits.output_bytes_max = 0;
  const auto ended = this->run(std::move(run), {}, events);
  if (!ended.ok()) return ended.error();
  const auto tell = [&](const std::string& what) {
    const std::string line = fmt::format("context '{}': {}\n", id, what);
    (void)events.write(wasi::Stream::kStderr, as_bytes(line));
  };
  if (ended->outcome.error) tell(ended->outcome.error->message);
  if (!ended->outcome.context->note.empty()) tell(ended->outcome.context->note);
  return {};
}

Result<void> Sandbox::delete_context(std::string_view id, RunEvents& events) {
  SW_CHECK_OK(interrupt(id));
  auto ended = end_context(id, kExitHandlersWallMax, events);
  if (ended.ok() || ended.error().code == ErrorCode::kLimitExceeded) return ended;
  // It is deleted even if it cannot be run any more.
  MutexLock lock(mutex_);
  const object::Turns::Turn turn(turns_, id, lock);
  SW_TRY(const ContextRecord* const found, find(id));
  const ContextRecord context = *found;
  // Best effort: what cannot be reached now expires on its own.
  const Question remove = [&](protocol::Interpreter& interpreter) -> Result<protocol::ContextInfo> {
    SW_CHECK_OK(interpreter.remove(context.id));
    return protocol::ContextInfo{};
  };
  (void)ask(context, remove);
  SW_CHECK_OK(load());
  SW_CHECK_OK(store({.erased = context.id, .used = true}));
  contexts_.erase(context.id);
  return {};
}

// --- versions

Result<ContextRecord> Sandbox::fork(std::string_view id, const std::optional<std::string>& new_id,
                                    const ContextVersion& from) {
  MutexLock lock(mutex_);
  const object::Turns::Turn turn(turns_, id, lock);
  SW_TRY(const ContextRecord* const found, find(id));
  const ContextRecord original = *found;
  SW_CHECK_OK(check_new_id(new_id));
  const object::Turns::Turn making(turns_, kNewContexts, lock);
  SW_CHECK_OK(load());
  SW_CHECK_OK(check_new_id(new_id));
  ContextRecord record = new_record(new_id.value_or(new_context_id()));
  SW_TRY(const protocol::ContextInfo said, ask(original, [&](protocol::Interpreter& interpreter) {
           return make_anew(interpreter, record.id, new_id.has_value(),
                            [&] { return interpreter.fork(original.id, record.id, from); });
         }));
  record.binding = original.binding;
  record.language = original.language;
  record.engine = original.engine;
  record.env = original.env;
  record.durability = original.durability;
  record.executions = said.executions;
  take_over_versions(record, said);
  return keep(std::move(record));
}

/// Has the Interpreter change a context's memory, or what is kept of it, and notes what it says.
Result<void> Sandbox::rewind(std::string_view id, const Question& question) {
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

Result<void> Sandbox::undo(std::string_view id, std::uint32_t runs) {
  return rewind(id, [&](protocol::Interpreter& interpreter) { return interpreter.undo(id, runs); });
}

Result<void> Sandbox::restore(std::string_view id, const ContextVersion& version) {
  return rewind(
      id, [&](protocol::Interpreter& interpreter) { return interpreter.restore(id, version); });
}

Result<void> Sandbox::add_checkpoint(std::string_view id, std::string_view name) {
  return rewind(id, [&](protocol::Interpreter& interpreter) -> Result<protocol::ContextInfo> {
    SW_CHECK_OK(interpreter.add_checkpoint(id, name));
    return interpreter.context(id);
  });
}

Result<void> Sandbox::remove_checkpoint(std::string_view id, std::string_view name) {
  return rewind(id, [&](protocol::Interpreter& interpreter) -> Result<protocol::ContextInfo> {
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
