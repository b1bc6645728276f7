// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a binding name stands for: a runtime Worker, which runs code of one language, and the
// Interpreters in it. They may be in this process, behind a socket, or on another host; callers
// cannot tell.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/run.h"
#include "sandbox_workers/protocol/protocol.h"
#include "sandbox_workers/wasi/streams.h"

namespace sw::protocol {

/// As ExecuteArgs::joint, for what changes a context's memory without a run.
using JointChange = JointCommit<ContextInfo>;

/// The contexts of one language in one sandbox. Each call blocks until it is done. Runs of one
/// context, and what changes its memory, happen one at a time; questions never wait for a run.
/// Errors of all: kContextNotFound; kInvalidArgument and kNotFound for what must not be asked, with
/// the reason; kUnreachable when whatever carries the call failed; else the host's.
/// Threads: any.
class Interpreter {
 public:
  virtual ~Interpreter() = default;

  virtual Result<ContextInfo> create(std::string_view id, std::string_view cwd) = 0;
  /// By creation.
  virtual Result<std::vector<ContextInfo>> contexts() = 0;
  virtual Result<ContextInfo> context(std::string_view id) = 0;
  /// Without running any code.
  virtual Result<void> remove(std::string_view id) = 0;
  /// Everything, as if it had never been.
  virtual Result<void> destroy() = 0;

  /// Runs a cell, or ends the context (Run::ends_context), which is then to be removed. What the code
  /// did wrong is part of the answer.
  virtual Result<ExecuteResponse> execute(ExecuteArgs args, RunEvents& events) = 0;

  /// The steps that can be gone back to, oldest first. Those after the current one were left by
  /// going back.
  virtual Result<std::vector<HistoryEntry>> history(std::string_view id) = 0;
  /// Forgets the steps before the current one, and those after it. Checkpoints stay.
  virtual Result<void> forget_history(std::string_view id) = 0;
  /// A context that goes on from a version of `id`, and has the history that led there.
  virtual Result<ContextInfo> fork(std::string_view id, std::string_view new_id,
                                   const ContextVersion& from, JointChange* joint = nullptr) = 0;
  /// Goes back to a version; can be undone.
  virtual Result<ContextInfo> restore(std::string_view id, const ContextVersion& version,
                                      JointChange* joint = nullptr) = 0;
  /// Takes back what the last `runs` saved runs did to memory. kInvalidArgument if a step between
  /// is not kept any more, naming those that are.
  virtual Result<ContextInfo> undo(std::string_view id, std::uint32_t runs,
                                   JointChange* joint = nullptr) = 0;
  virtual Result<Checkpoint> add_checkpoint(std::string_view id, std::string_view name) = 0;
  virtual Result<std::vector<Checkpoint>> checkpoints(std::string_view id) = 0;
  virtual Result<void> remove_checkpoint(std::string_view id, std::string_view name) = 0;
};

/// What a Worker says of itself.
struct WorkerInfo {
  std::string language;
  std::string engine;     ///< for people
  bool contexts = false;  ///< it has Interpreters
  int protocol = kProtocolVersion;
};

/// Threads: any.
class Worker {
 public:
  virtual ~Worker() = default;

  /// Errors: kUnreachable, also for what is no Worker.
  virtual Result<WorkerInfo> info() = 0;
  /// Runs code in a guest of its own, of which nothing remains.
  virtual Result<Outcome> run(const Run& request, RunEvents& output) = 0;
  /// The Interpreter `key`, be there anything stored of it or not. The Worker outlives it.
  /// Errors: kInvalidArgument for a key that cannot be, and when this Worker has no contexts.
  virtual Result<std::shared_ptr<Interpreter>> interpreter(std::string_view key) = 0;
};

/// Which Worker a binding name stands for.
using Bindings = std::map<std::string, std::shared_ptr<Worker>, std::less<>>;

}  // namespace sw::protocol
