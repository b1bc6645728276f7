// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A runtime Worker for tests: its Interpreters keep a mirror of the files, by manifests as if they
// were in another process, and count runs; what a run does is the test's. Threads: any, but the
// members are for tests that are at rest.

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "sandbox_workers/protocol/answers.h"
#include "sandbox_workers/protocol/worker.h"
#include "sandbox_workers/workspace/workspace.h"
#include "wasi/tree_state.h"

namespace sw::sandbox {

/// Holds runs up until the test lets them go on, or they are cancelled. Threads: any.
class Gate {
 public:
  /// For FakeWorker::before_run.
  void pass(const Run& run) { pass(run.code, run.cancel); }
  void pass(const std::string& what, const std::stop_token& cancel = {}) {
    std::unique_lock lock(mutex_);
    ++arrived_[what];
    changed_.notify_all();
    changed_.wait(lock, cancel, [&] { return open_ || opened_.contains(what); });
  }
  /// Until so many have come.
  void wait_for(const std::string& what, int count = 1) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrived_[what] >= count; });
  }
  int arrived(const std::string& what) {
    const std::lock_guard lock(mutex_);
    return arrived_[what];
  }
  void open(const std::string& what) {
    const std::lock_guard lock(mutex_);
    opened_.insert(what);
    changed_.notify_all();
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;  // guards all below
  std::condition_variable_any changed_;
  std::map<std::string, int> arrived_;
  std::set<std::string> opened_;
  bool open_ = false;
};

class FakeWorker final : public protocol::Worker {
 public:
  explicit FakeWorker(std::string language, bool contexts = true)
      : self{.language = std::move(language), .engine = "Fake", .contexts = contexts} {}

  /// What an Interpreter has, by context.
  struct State {
    std::map<std::string, Workspace> mirrors;
    std::map<std::string, std::uint64_t> executions;
    std::map<std::string, std::uint64_t> steps;  // whose memory is saved
  };

  // What tests look at and set.
  protocol::WorkerInfo self;
  std::vector<std::string> calls;  // all but runs: "undo c 1"
  std::vector<protocol::ExecuteArgs> runs;
  std::vector<Run> runs_once;
  std::vector<std::vector<std::string>> asked_for;  // paths of each get_files call
  std::map<std::string, State> interpreters;        // by key
  std::optional<Error> unreachable;
  std::optional<Error> refuse;
  /// Called before a run and before a run once, to hold it up.
  std::function<void(const Run& run)> before_run;
  /// Called before what a Context is asked otherwise, as "undo c 1", to hold that up.
  std::function<void(const std::string& call)> before_call;
  std::function<void()> after_destroy;
  /// What a context does when it ends; see `perform`.
  std::string at_end;
  /// Called in a run, with the mirror.
  std::function<void(Workspace& files, protocol::ExecuteResponse& response)> during_run;
  /// Called with the answer to a run, to spoil it.
  std::function<void(protocol::ExecuteResponse& response)> after_run;

  Result<protocol::WorkerInfo> info() override {
    const std::lock_guard lock(mutex_);
    if (unreachable) return *unreachable;
    return self;
  }
  Result<Outcome> run(const Run& request, RunEvents& output) override {
    if (before_run) before_run(request);
    const std::lock_guard lock(mutex_);
    runs_once.push_back(request);
    if (unreachable) return *unreachable;
    (void)output.write(wasi::Stream::kStdout, as_bytes("ran once\n"));
    return Outcome{};
  }
  Result<std::shared_ptr<protocol::Interpreter>> interpreter(std::string_view key) override;
  std::size_t interpreter_count() {
    const std::lock_guard lock(mutex_);
    return interpreters.size();
  }

 private:
  class Contexts;
  std::recursive_mutex mutex_;
};

class FakeWorker::Contexts final : public protocol::Interpreter {
 public:
  Contexts(FakeWorker& worker, std::string_view key) : worker_(worker), key_(key) {}

  Result<protocol::ContextInfo> create(std::string_view id, std::string_view cwd) override {
    const std::lock_guard lock(worker_.mutex_);
    SW_CHECK_OK(called(fmt::format("create {}", id)));
    if (!state().executions.emplace(id, 0).second) {
      return protocol::refusal(fmt::format("Code context '{}' already exists", id));
    }
    protocol::ContextInfo made = info_of(id);
    made.cwd = cwd;
    return made;
  }
  Result<std::vector<protocol::ContextInfo>> contexts() override {
    const std::lock_guard lock(worker_.mutex_);
    SW_CHECK_OK(called("contexts"));
    std::vector<protocol::ContextInfo> all;
    for (const auto& [id, count] : state().executions) all.push_back(info_of(id));
    return all;
  }
  Result<protocol::ContextInfo> context(std::string_view id) override {
    const std::lock_guard lock(worker_.mutex_);
    return known(fmt::format("context {}", id), id);
  }
  Result<void> remove(std::string_view id) override {
    const std::lock_guard lock(worker_.mutex_);
    SW_CHECK_OK(called(fmt::format("remove {}", id)));
    state().executions.erase(std::string(id));
    return {};
  }
  Result<void> destroy() override {
    {
      const std::lock_guard lock(worker_.mutex_);
      SW_CHECK_OK(called("destroy"));
      worker_.interpreters.erase(key_);
    }
    if (worker_.after_destroy) worker_.after_destroy();
    return {};
  }
  Result<protocol::ExecuteResponse> execute(protocol::ExecuteArgs args,
                                            RunEvents& output) override {
    if (args.run.ends_context) return end(args.run, output);
    if (worker_.before_run) worker_.before_run(args.run);
    const std::lock_guard lock(worker_.mutex_);
    worker_.runs.push_back(args);
    if (worker_.unreachable) return *worker_.unreachable;
    if (worker_.refuse) return *worker_.refuse;
    const std::string& id = args.run.context;
    const auto counted = state().executions.find(id);
    if (counted == state().executions.end()) return protocol::context_not_found(id);
    Workspace& mirror =
        state().mirrors.try_emplace(id, wasi::TreeLimits{}, std::uint64_t{0}).first->second;
    SW_CHECK_OK(reconcile(mirror, *args.run.files));
    const wasi::TreeState before = mirror.remember();
    protocol::ExecuteResponse response;
    response.outcome.value = Value{.text = args.run.code};
    response.outcome.context.emplace().id = id;
    (void)output.write(wasi::Stream::kStdout, as_bytes("ran\n"));
    if (args.run.cancel.stop_requested()) response.outcome.ending = Ending::kCancelled;
    perform(mirror, args.run.code);
    if (worker_.during_run) worker_.during_run(mirror, response);
    if (response.outcome.error && args.run.on_error != AfterError::kKeep) {
      (void)before.restore(*mirror.tree(), 0);
    }
    response.outcome.files = mirror.changes_since(before);
    response.outcome.context->executions = ++counted->second;
    state().steps[id] = counted->second;
    if (worker_.after_run) worker_.after_run(response);
    return response;
  }
  Result<void> forget_history(std::string_view id) override {
    SW_TRY(std::ignore, context(id));
    return {};
  }
  Result<std::vector<protocol::HistoryEntry>> history(std::string_view id) override {
    const std::lock_guard lock(worker_.mutex_);
    SW_CHECK_OK(known(fmt::format("history {}", id), id));
    return std::vector<protocol::HistoryEntry>{
        {.step = 3, .taken_at_ms = 5, .code = "x = 1", .bytes = 700, .current = true}};
  }
  Result<protocol::ContextInfo> fork(std::string_view id, std::string_view new_id,
                                     const ContextVersion& from,
                                     protocol::JointChange* /*joint*/) override {
    const std::lock_guard lock(worker_.mutex_);
    SW_TRY(const auto original, known(fmt::format("fork {} {}{}", id, new_id, named(from)), id));
    state().executions.emplace(new_id, original.executions);
    if (original.step) state().steps[std::string(new_id)] = from.step().value_or(*original.step);
    return info_of(new_id);
  }
  Result<protocol::ContextInfo> undo(std::string_view id, std::uint32_t count,
                                     protocol::JointChange* /*joint*/) override {
    const std::lock_guard lock(worker_.mutex_);
    SW_CHECK_OK(known(fmt::format("undo {} {}", id, count), id));
    if (const auto step = state().steps.find(std::string(id)); step != state().steps.end())
      step->second -= std::min<std::uint64_t>(step->second, count);
    return info_of(id);
  }
  Result<protocol::Checkpoint> add_checkpoint(std::string_view id, std::string_view name) override {
    const std::lock_guard lock(worker_.mutex_);
    SW_CHECK_OK(known(fmt::format("add_checkpoint {} {}", id, name), id));
    return protocol::Checkpoint{.name = std::string(name), .taken_at_ms = 5};
  }
  Result<std::vector<protocol::Checkpoint>> checkpoints(std::string_view id) override {
    const std::lock_guard lock(worker_.mutex_);
    SW_CHECK_OK(known(fmt::format("checkpoints {}", id), id));
    return std::vector<protocol::Checkpoint>{{.name = "a", .taken_at_ms = 5}};
  }
  Result<void> remove_checkpoint(std::string_view id, std::string_view name) override {
    const std::lock_guard lock(worker_.mutex_);
    SW_CHECK_OK(known(fmt::format("remove_checkpoint {} {}", id, name), id));
    return {};
  }
  Result<protocol::ContextInfo> restore(std::string_view id, const ContextVersion& version,
                                        protocol::JointChange* /*joint*/) override {
    const std::lock_guard lock(worker_.mutex_);
    SW_CHECK_OK(known(fmt::format("restore {}{}", id, named(version)), id));
    if (version.step()) state().steps[std::string(id)] = *version.step();
    return info_of(id);
  }

 private:
  State& state() { return worker_.interpreters[key_]; }

  static std::string named(const ContextVersion& version) {
    if (version.step()) return fmt::format(" step {}", *version.step());
    return version.checkpoint() ? " " + *version.checkpoint() : "";
  }

  /// Its exit handlers write a file, if they are told to.
  Result<protocol::ExecuteResponse> end(const Run& run, RunEvents& output) {
    const std::lock_guard lock(worker_.mutex_);
    SW_CHECK_OK(called(fmt::format("end {}", run.context)));
    if (worker_.refuse) return *worker_.refuse;
    if (!state().executions.contains(run.context)) {
      return protocol::context_not_found(run.context);
    }
    (void)output.write(wasi::Stream::kStdout, as_bytes("ended\n"));
    Workspace mirror(wasi::TreeLimits{}, 0);
    SW_CHECK_OK(reconcile(mirror, *run.files));
    const wasi::TreeState before = mirror.remember();
    perform(mirror, worker_.at_end);
    protocol::ExecuteResponse response;
    response.outcome.context.emplace().id = run.context;
    response.outcome.files = mirror.changes_since(before);
    return response;
  }

  /// Held up without the mutex, which the callers have once.
  Result<void> called(std::string call) {
    if (worker_.before_call) {
      worker_.mutex_.unlock();
      worker_.before_call(call);
      worker_.mutex_.lock();
    }
    worker_.calls.push_back(std::move(call));
    if (worker_.unreachable) return *worker_.unreachable;
    return {};
  }
  Result<protocol::ContextInfo> known(std::string call, std::string_view id) {
    SW_CHECK_OK(called(std::move(call)));
    if (!state().executions.contains(std::string(id))) return protocol::context_not_found(id);
    return info_of(id);
  }
  protocol::ContextInfo info_of(std::string_view id) {
    protocol::ContextInfo info{.id = std::string(id),
                               .cwd = "/workspace",
                               .executions = state().executions[std::string(id)]};
    const auto step = state().steps.find(info.id);
    if (step != state().steps.end() && step->second != 0) info.step = step->second;
    return info;
  }
  /// Code that is made of these, a line each: "write PATH TEXT", "remove PATH", "folder PATH",
  /// "link PATH TARGET". Anything else does nothing.
  static void perform(Workspace& files, const std::string& code) {
    std::istringstream lines(code);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string what;
      std::string path;
      std::string text;
      words >> what >> path >> text;
      if (what == "write") (void)files.write(path, text, FileEncoding::kUtf8, 0);
      if (what == "remove") (void)files.remove(path, Depth::kAll, IfMissing::kFail, 0);
      if (what == "folder") (void)files.make_directory(path, Depth::kAll, 0);
      if (what == "link") {
        (void)files.tree()->create_symlink(files.tree()->root(), path, text, 0);
      }
    }
  }
  Result<void> reconcile(Workspace& mirror, const RunFiles& files) {
    mirror.set_disabled(files.disabled);
    const wasi::TreeState state = files.state ? *files.state : wasi::TreeState();
    const WorkspaceManifest manifest = manifest_of(state);
    auto missing = mirror.apply_sync(manifest, {}, 0);
    if (missing.ok() && !missing->empty()) {
      worker_.asked_for.push_back(*missing);
      missing = mirror.apply_sync(manifest, workspace_files(state, *missing), 0);
    }
    if (missing.ok() && missing->empty()) return {};
    return Error{ErrorCode::kBadReply,
                 fmt::format("Sandbox did not provide {} workspace file(s)",
                             missing.ok() ? missing->size() : 0),
                 0};
  }

  FakeWorker& worker_;
  const std::string key_;
};

inline Result<std::shared_ptr<protocol::Interpreter>> FakeWorker::interpreter(
    std::string_view key) {
  const std::lock_guard lock(mutex_);
  if (unreachable) return *unreachable;
  return std::shared_ptr<protocol::Interpreter>(std::make_shared<Contexts>(*this, key));
}

}  // namespace sw::sandbox
