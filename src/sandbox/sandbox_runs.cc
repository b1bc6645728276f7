// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// A run in a sandbox: from the caller's thread to one of a guest, and back into the storage.

#include <fmt/format.h>

#include <future>
#include <utility>

#include "executor/slot_events.h"
#include "protocol/messages.h"
#include "sandbox/execution.h"
#include "sandbox_workers/protocol/answers.h"

namespace sw::sandbox {

namespace {

Error being_destroyed() {
  return Error{ErrorCode::kUnavailable, "the sandbox is being destroyed", 0};
}

Error bad_answer(std::string_view what) {
  return Error{ErrorCode::kBadReply, fmt::format("the Interpreter returned {}", what), 0};
}

/// Whoever wrote the Interpreter: what the rest relies on.
Result<void> check(const protocol::ExecuteResponse& response) {
  if (!response.outcome.context) return bad_answer("nothing about the context");
  if (!response.outcome.files) return bad_answer("nothing about the files");
  if (!Workspace::normalize(response.outcome.cwd).ok()) {
    return bad_answer("a working directory outside of /workspace");
  }
  return {};
}

}  // namespace

// --- on the caller's thread

/// The context that a run without one belongs to; empty for a binding without contexts.
Result<std::string> Sandbox::context_for(const Run& run, const Binding& binding, MutexLock& lock) {
  if (!run.context.empty()) return run.context;
  if (const ContextRecord* const oldest = oldest_of(binding.name())) return oldest->id;
  const auto info = probe(binding);
  if (!info.ok()) return info.error();
  if (!info->contexts) return std::string();
  // Of several that come at once, the first makes it.
  const object::Turns::Turn turn(turns_, kNewContexts, lock);
  SW_CHECK_OK(load());
  if (const ContextRecord* const oldest = oldest_of(binding.name())) return oldest->id;
  SW_CHECK_OK(check_new_id({}));
  SW_TRY(const ContextRecord made, create(binding, *info, {.binding = binding.name()}));
  return made.id;
}

Result<std::shared_ptr<Sandbox::Launch>> Sandbox::prepare(Run run, const std::string& binding) {
  MutexLock lock(mutex_);
  if (ending_ != 0 && !run.ends_context) return being_destroyed();
  SW_CHECK_OK(load());
  if (!run.ends_context) SW_CHECK_OK(protocol::check_code(run.code, kCodeBytesMax));
  SW_CHECK_OK(validate(run));
  if (run.files)
    return protocol::refusal("a sandbox has files of its own: Run::files must be null");
  std::string name = binding;
  if (!run.context.empty()) {
    SW_TRY(const ContextRecord* const context, find(run.context));
    name = context->binding;
  } else if (name.empty()) {
    return protocol::refusal("Pass a context or a binding");
  }
  SW_TRY(const Binding found, Binding::find(parts_.bindings, name));
  SW_TRY(run.context, context_for(run, found, lock));
  if (ending_ != 0 && !run.ends_context) return being_destroyed();
  if (!run.on_error) run.on_error = parts_.options.profile.after_error;
  run.home |= parts_.options.home;
  auto launch = std::make_shared<Launch>(std::move(run), found);  // shared with the guests' pool
  runs_.emplace(launch->run.context, launch->stop);
  return launch;
}

void Sandbox::start(Run run, const std::string& binding, RunEvents& events, Done done) {
  auto prepared = prepare(std::move(run), binding);
  if (!prepared.ok()) return done(std::move(prepared).error());
  const std::shared_ptr<Launch> launch = *std::move(prepared);
  const std::string& sandbox = name_.id;
  executor::GuestPool::Request request{.owner = sandbox,
                                       .turn = sandbox + '/' + launch->run.context,
                                       .memory_bytes = launch->run.limits.memory_bytes_max,
                                       .cancel = launch->run.cancel};
  if (launch->run.context.empty()) request.turn.clear();
  if (parts_.options.profile.serial) request.turn = sandbox;
  parts_.guests.submit(std::move(request), [this, launch, &events, done = std::move(done)](
                                               const Result<executor::GuestPool::Slot*>& slot) {
    Result<Finished> finished = Error{};
    if (slot.ok()) {
      executor::SlotEvents slotted(events, **slot);
      finished = launch->run.context.empty() ? run_once(*launch, slotted)
                                             : run_in_context(*launch, **slot, slotted);
    } else {
      finished = slot.error();
    }
    forget_run(*launch);
    done(std::move(finished));
  });
}

Result<Finished> Sandbox::run(Run run, const std::string& binding, RunEvents& events) {
  // Shared with the run, which may still be within set_value when the waiting has ended.
  const auto promise = std::make_shared<std::promise<Result<Finished>>>();
  auto future = promise->get_future();
  start(std::move(run), binding, events,
        [promise](Result<Finished> finished) { promise->set_value(std::move(finished)); });
  return future.get();
}

void Sandbox::forget_run(const Launch& launch) {
  const MutexLock lock(mutex_);
  const auto [first, last] = runs_.equal_range(launch.run.context);
  for (auto run = first; run != last; ++run) {
    if (run->second == launch.stop) {
      runs_.erase(run);
      break;
    }
  }
  if (runs_.empty()) no_runs_.notify_all();
}

Result<void> Sandbox::interrupt(std::string_view context) {
  std::vector<std::stop_source> stops;
  {
    const MutexLock lock(mutex_);
    SW_CHECK_OK(find(context));
    const auto [first, last] = runs_.equal_range(context);
    for (auto run = first; run != last; ++run) stops.push_back(run->second);
  }
  // Whoever hears of it may ask this sandbox something.
  for (std::stop_source& stop : stops) stop.request_stop();
  return {};
}

void Sandbox::interrupt_all() {
  std::vector<std::stop_source> stops;
  {
    const MutexLock lock(mutex_);
    for (const auto& [context, stop] : runs_) stops.push_back(stop);
  }
  for (std::stop_source& stop : stops) stop.request_stop();
}

// --- on the guest's thread

/// Lays the sandbox's environment and the context's under the run's own.
void Sandbox::apply_env(Run& run, const ContextRecord* context) const {
  Env env = record_->env;
  if (context) {
    for (const auto& [name, value] : context->env) env[name] = value;
  }
  for (const std::string& name : run.unset_env) env.erase(name);
  for (const auto& [name, value] : run.env) env[name] = value;
  run.env.assign(env.begin(), env.end());
  run.unset_env.clear();
}

Result<Finished> Sandbox::run_once(const Launch& launch, RunEvents& events) {
  Run run = launch.run;
  {
    const MutexLock lock(mutex_);
    SW_CHECK_OK(load());
    apply_env(run, nullptr);
  }
  SW_TRY(const protocol::WorkerInfo info, launch.binding.probe());
  Finished finished{.outcome = {}, .language = info.language, .engine = info.engine};
  SW_TRY(finished.outcome, launch.binding.answer(launch.binding.worker().run(run, events)));
  const MutexLock lock(mutex_);
  SW_CHECK_OK(load());
  SW_CHECK_OK(store({.used = true}));
  return finished;
}

Result<Finished> Sandbox::run_in_context(const Launch& launch, executor::GuestPool::Slot& slot,
                                         RunEvents& events) {
  Execution execution{.launch = launch, .slot = slot};
  Joint joint(*this, execution);
  Result<Finished> finished = Error{};
  {
    MutexLock lock(mutex_);
    const object::Turns::Turn turn(turns_, launch.run.context, lock);
    SW_CHECK_OK(begin(execution));
    if (!launch.run.ends_context) execution.args.joint = &joint;
    Result<protocol::ExecuteResponse> answer = execute(execution, events);
    if (launch.run.ends_context) {
      // Nobody makes another context of the name before this one is gone everywhere.
      const object::Turns::Turn making(turns_, kNewContexts, lock);
      finished = end(execution, std::move(answer));
      if (finished.ok()) remove_at_interpreter(execution);
    } else {
      finished = end(execution, std::move(answer));
    }
  }
  slot.release();
  SW_CHECK_OK(wait_for_disk(execution));
  return finished;
}

Result<void> Sandbox::wait_for_disk(Execution& execution) {
  if (!execution.stored) return {};
  auto stored = execution.stored->wait();
  if (stored.ok()) return {};
  const MutexLock lock(mutex_);
  forget();
  return std::move(stored).error().as_fault().while_doing("storing the run");
}

bool Sandbox::Joint::can_join(const storage::ObjectStorage& interpreter) const {
  const MutexLock lock(sandbox_.mutex_);
  return sandbox_.storage_.is_beside(interpreter);
}

Result<void> Sandbox::Joint::commit(const protocol::ExecuteResponse& answer,
                                    storage::ObjectStorage& interpreter,
                                    const storage::TransactionBody& body) {
  // The guest has done its work; others need not wait for the storage as well.
  execution_.slot.release();
  const MutexLock lock(sandbox_.mutex_);
  SW_CHECK_OK(sandbox_.load());
  SW_CHECK_OK(check(answer));
  const Interpreters with{interpreter, body};
  auto taken_over = sandbox_.take_over(execution_, answer, &with);
  execution_.taken_over = taken_over.ok();
  return taken_over;
}

/// Best effort: what cannot be reached now expires on its own.
void Sandbox::remove_at_interpreter(const Execution& execution) {
  const Unlocked unlocked(mutex_);
  const auto interpreter = execution.launch.binding.interpreter(execution.key);
  if (interpreter.ok()) (void)(*interpreter)->remove(execution.context.id);
}

Result<protocol::ExecuteResponse> Sandbox::execute(Execution& execution, RunEvents& events) {
  const Unlocked unlocked(mutex_);
  const Binding& binding = execution.launch.binding;
  SW_TRY(const auto interpreter, binding.interpreter(execution.key));
  return binding.answer(interpreter->execute(std::move(execution.args), events));
}

Result<void> Sandbox::begin(Execution& execution) {
  SW_TRY(const ContextRecord* const context, find(execution.launch.run.context));
  execution.context = *context;
  execution.key = key_;
  protocol::ExecuteArgs& args = execution.args;
  args.run = execution.launch.run;
  apply_env(args.run, context);
  args.executions_known = context->interpreter_executions;
  execution.durability = args.run.durability.value_or(
      context->durability.value_or(record_->durability.value_or(parts_.options.durability)));
  args.run.durability = execution.durability;
  if (parts_.options.file_api) {
    SW_TRY(const Workspace* const workspace, files());
    args.run.files = workspace->for_run();
  } else {
    // Shared with the run.
    args.run.files = std::make_shared<const RunFiles>(RunFiles{.disabled = true});
  }
  return {};
}

Result<Finished> Sandbox::end(Execution& execution, Result<protocol::ExecuteResponse> answer) {
  const std::string& id = execution.context.id;
  SW_CHECK_OK(load());
  if (!answer.ok()) {
    if (answer.error().code == ErrorCode::kContextNotFound) {
      SW_CHECK_OK(store({.erased = id}));
      contexts_.erase(id);
    }
    return std::move(answer).error();
  }
  if (!execution.taken_over) {
    SW_CHECK_OK(check(*answer));
    SW_CHECK_OK(take_over(execution, *answer, nullptr));
  }
  Finished finished{.outcome = std::move(answer->outcome),
                    .language = execution.context.language,
                    .engine = execution.context.engine};
  finished.outcome.files.reset();
  finished.outcome.context->id = id;
  if (const auto context = contexts_.find(id); context != contexts_.end()) {
    finished.outcome.cwd = context->second.cwd;
    finished.outcome.context->executions = context->second.executions;
  }
  if (expires_) finished.expires_at_ms = expires_->time_since_epoch().count();
  return finished;
}

Result<void> Sandbox::apply_files(const WorkspaceDiff& changes) {
  if (!parts_.options.file_api || changes.empty()) return {};
  SW_TRY(Workspace* const workspace, files());
  const auto applied = workspace->apply_diff(changes, now_ns());
  if (applied.ok()) return {};
  forget();  // some of it may be in the tree
  return bad_answer("an invalid workspace: " + applied.error().message);
}

Result<void> Sandbox::take_over(Execution& execution, const protocol::ExecuteResponse& response,
                                const Interpreters* with) {
  const bool files = parts_.options.file_api;
  SW_CHECK_OK(apply_files(*response.outcome.files));
  ContextRecord after = execution.context;
  if (execution.launch.run.ends_context) {
    SW_CHECK_OK(store({.files = files, .erased = after.id, .used = true, .run = &execution}));
    contexts_.erase(after.id);
    return {};
  }
  ++after.executions;
  after.interpreter_executions = response.outcome.context->executions;
  after.last_used_ms = now_ms();
  after.cwd = *Workspace::normalize(response.outcome.cwd);
  after.snapshot = response.snapshot;
  // They say which state of the files the step left, and may have been forgotten after a failure.
  SW_CHECK_OK(this->files());
  SW_CHECK_OK(store({.files = files,
                     .context = &after,
                     .used = true,
                     .run = &execution,
                     .with = with,
                     .ended = after.interpreter_executions}));
  contexts_.insert_or_assign(after.id, std::move(after));
  return {};
}

}  // namespace sw::sandbox
