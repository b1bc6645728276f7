// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A runtime Worker in this process: an engine, and the Interpreters that hold its code contexts.
//
//   auto worker = define_interpreter_runtime(engine);                       // contexts last as
//   long as the Worker
//   auto worker = define_interpreter_runtime(engine, {.storage_folder = "data"});   // … and go on
//   after a restart
//
// Own routes: derive from InterpreterWorker, override `route`, and make it by `make_worker`.

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/engine.h"
#include "sandbox_workers/engine/run.h"
#include "sandbox_workers/interpreter/residency_pool.h"
#include "sandbox_workers/runtime/http.h"
#include "sandbox_workers/runtime/worker.h"
#include "sandbox_workers/wasi/tree.h"
#include "sandbox_workers/workspace/workspace.h"

namespace sw::storage {
class Storage;
}
namespace sw::object {
class Clock;
}

namespace sw::interpreter {

struct RuntimeOptions {  // how a Worker keeps its contexts
  /// Where contexts are kept (docs/data-folder.md); one process at a time. Empty: in memory, unless
  /// `storage` is given.
  std::filesystem::path storage_folder = {};
  /// A storage that others use too, for programs built with this project's sources. Outlives the
  /// Worker.
  storage::Storage* storage = nullptr;
  /// For tests. Outlives the Worker; null: the system's.
  object::Clock* clock = nullptr;
  /// An Interpreter that is not used for so long is deleted with all its contexts. Zero: never.
  std::chrono::milliseconds idle_ttl = std::chrono::hours(24);
  /// Where instances stay between runs; null: a pool of this Worker's own. Shared with other
  /// Workers.
  std::shared_ptr<ResidencyPool> residency = nullptr;
  /// How many cells in contexts run at once, and how many runs outside of contexts; more wait, up
  /// to 1,000. Zero: as many as there are processors.
  std::size_t runs_at_once = 0;
  std::size_t contexts_max = 8;  ///< of one Interpreter
  /// How many runs of a context can be undone. Each that is kept costs what it changed.
  std::uint32_t undo_max = 20;
  /// Of POST /execute; contexts' runs bring their own.
  RunLimits limits = {};
  wasi::TreeLimits workspace_limits = kWorkspaceLimits;  ///< unless a manifest brings others
  /// False: runs without contexts only, even if the engine has sessions.
  bool contexts = true;
};

class InterpreterRuntime;

/// Over HTTP it answers GET /interpreter, POST /execute, /interpreters/KEY/… (docs/protocol.md),
/// 404 and 405.
/// Threads: any; runs of one Interpreter happen one at a time, in the order of the calls.
class InterpreterWorker : public runtime::Worker {
 public:
  explicit InterpreterWorker(std::shared_ptr<InterpreterRuntime> runtime);
  ~InterpreterWorker() override;

  Result<runtime::WorkerInfo> info() override;
  /// Waits for its turn. Errors: kLimitExceeded when too many wait, kUnavailable when it is
  /// cancelled meanwhile.
  Result<Outcome> run(const Run& request, RunEvents& output) override;
  Result<std::unique_ptr<runtime::Interpreter>> interpreter(std::string_view key) override;

  runtime::Response fetch(const runtime::Request& request);

  const std::shared_ptr<engine::Engine>& engine() const;

 protected:
  /// Requests for other paths than those above; nullopt: 404.
  virtual std::optional<runtime::Response> route(const runtime::Request& request);

 private:
  // shared with nobody, but derived classes do not see its type
  std::shared_ptr<InterpreterRuntime> runtime_;
};

/// What a Worker is made from. Errors: those of opening the storage.
Result<std::shared_ptr<InterpreterRuntime>> make_runtime(std::shared_ptr<engine::Engine> engine,
                                                         const RuntimeOptions& options = {});

/// A Worker of a class of one's own, whose constructor passes on what make_runtime made.
template <class T>
Result<std::shared_ptr<T>> make_worker(std::shared_ptr<engine::Engine> engine,
                                       const RuntimeOptions& options = {}) {
  SW_TRY(auto runtime, make_runtime(std::move(engine), options));
  return std::make_shared<T>(std::move(runtime));
}

/// A Worker with the usual routes.
Result<std::shared_ptr<InterpreterWorker>> define_interpreter_runtime(
    std::shared_ptr<engine::Engine> engine, const RuntimeOptions& options = {});

}  // namespace sw::interpreter
