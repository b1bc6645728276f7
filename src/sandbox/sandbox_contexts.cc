// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// A sandbox's contexts.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "protocol/messages.h"
#include "sandbox/execution.h"
#include "sandbox/names.h"
#include "sandbox/sandbox.h"
#include "sandbox_workers/protocol/answers.h"

namespace sw::sandbox {

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

/// Has an Interpreter make a context. A name that the caller chose may have been left behind there
/// when we were interrupted before keeping it, or when the Interpreter could not be reached to
/// delete it.
Result<protocol::ContextInfo> Sandbox::make_anew(
    protocol::Interpreter& interpreter, std::string_view id, bool chosen,
    const std::function<Result<protocol::ContextInfo>()>& make) {
  auto made = make();
  if (made.ok() || !chosen || info_of(made.error().code).http_status >= 500) return made;
  (void)interpreter.remove(id);
  return make();
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

}  // namespace sw::sandbox
