// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A runtime Worker in this process: an engine, and the Interpreters that hold its code contexts.
//
//   auto worker = make_runtime_worker(engine);                              // contexts in memory
//   auto worker = make_runtime_worker(engine, {.storage_folder = "data"});  // contexts on disk

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sandbox_workers/base/history_limits.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/engine.h"
#include "sandbox_workers/engine/run.h"
#include "sandbox_workers/protocol/http.h"
#include "sandbox_workers/protocol/worker.h"
#include "sandbox_workers/wasi/tree.h"
#include "sandbox_workers/workspace/workspace.h"

namespace sw::interpreter {

struct ResidencyLimits {  // how much may stay in memory between runs
  /// Memory of instances at rest, beyond what they share with their image.
  std::uint64_t bytes_max = std::uint64_t{1} << 30;
  /// Each takes an address range of 4 GiB and a few mappings, of which a process has 65530.
  std::size_t instances_max = 256;
};

/// Answers a request as the Worker does by itself.
using UsualAnswer = std::function<protocol::Response(const protocol::Request&)>;

/// What a Worker answers beyond the protocol, or otherwise. Called on the thread of the request.
struct RuntimeWorkerExtensions {
  /// Any request to the Worker: answers it, or passes it on, changed if it likes, to `usual`, whose
  /// answer it may change too. Empty: `usual`.
  std::function<protocol::Response(const protocol::Request&, const UsualAnswer& usual)> handle = {};
  /// The same for requests to an Interpreter (/interpreters/KEY/…), whose paths begin after the key.
  std::function<protocol::Response(protocol::Interpreter&, const protocol::Request&,
                                   const UsualAnswer& usual)>
      handle_interpreter = {};
  /// What callers get in the place of an Interpreter: one that adds to it, or changes what it does.
  std::function<std::shared_ptr<protocol::Interpreter>(std::shared_ptr<protocol::Interpreter>)>
      extend_interpreter = {};
};

struct RuntimeWorkerOptions {  // how a Worker keeps its contexts
  /// Where contexts are kept (docs/data-folder.md); one process at a time. Empty: in memory.
  std::filesystem::path storage_folder = {};
  /// An Interpreter that is not used for so long is deleted with all its contexts. Zero: never.
  std::chrono::milliseconds idle_ttl = std::chrono::hours(24);
  ResidencyLimits residency = {};
  /// Runs that compute at once; more wait for their turn. Zero: as many as there are processors.
  std::size_t runs_at_once = 0;
  std::size_t contexts_max = 8;  ///< of one Interpreter
  /// Which runs of a context can be gone back to. Each that is kept costs what it changed.
  HistoryLimits history = {};
  /// Of POST /execute; contexts' runs bring their own.
  RunLimits limits = {};
  /// False: runs without contexts only, even if the engine has sessions.
  bool contexts = true;
  RuntimeWorkerExtensions extensions = {};
};

/// Over HTTP it answers GET /interpreter, POST /execute, /interpreters/KEY/… (docs/protocol.md), 404
/// and 405.
/// Threads: any. Calls for one context happen one at a time, those for several side by side.
class RuntimeWorker : public protocol::Worker {
 public:
  virtual protocol::Response fetch(const protocol::Request& request) = 0;
  virtual const std::shared_ptr<engine::Engine>& engine() const = 0;
};

/// Errors: those of opening the storage.
Result<std::shared_ptr<RuntimeWorker>> make_runtime_worker(std::shared_ptr<engine::Engine> engine,
                                                           RuntimeWorkerOptions options = {});

}  // namespace sw::interpreter
