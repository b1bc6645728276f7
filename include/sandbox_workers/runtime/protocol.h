// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a Sandbox and the Interpreters behind its bindings say to each other, protocol version 1.

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "sandbox_workers/engine/run.h"
#include "sandbox_workers/runtime/profile.h"
#include "sandbox_workers/wasi/streams.h"
#include "sandbox_workers/workspace/workspace.h"

namespace sw::runtime {

inline constexpr int kProtocolVersion = 1;

using EnvVars = std::vector<std::pair<std::string, std::string>>;

/// What is stored of a context's memory, for people and for the Sandbox's registry.
struct SnapshotInfo {
  std::string build;
  std::uint64_t pages = 0;         ///< of 4 KiB that differ from the image
  std::uint64_t bytes = 0;         ///< pages * 4096
  std::uint64_t stored_bytes = 0;  ///< what they take in the storage
  std::int64_t taken_at_ms = 0;    ///< since the epoch
  bool stale = false;              ///< the memory has moved on since, and could not be saved
};

struct ContextInfo {  // what an Interpreter says of a context
  std::string id;
  std::string cwd;
  std::int64_t created_ms = 0;  ///< since the epoch, as all times here
  std::int64_t last_used_ms = 0;
  std::uint64_t executions = 0;
  bool resident = false;                      ///< an instance of it is in memory
  std::optional<SnapshotInfo> snapshot = {};  ///< absent while nothing is saved
};

/// A state of a context's memory that is kept under a name.
struct Checkpoint {
  std::string name;
  std::int64_t taken_at_ms = 0;
};

/// Whose memory a run began with.
enum class ContextState : std::uint8_t { kLive, kRestored, kFresh };

struct ExecuteArgs {  // a cell for a context
  std::string context_id;
  std::string code;
  /// By which of its names the caller calls the language, where that matters
  std::string alias;
  std::string
      file_name;  ///< how tracebacks name the code; empty: "<cell N>", as `executions` counts it
  EnvVars env;    ///< merged already
  WorkspaceManifest workspace;  ///< what the Sandbox has
  /// How many runs of the context the Sandbox knows of. An Interpreter that is one ahead (its
  /// answer was lost) takes that run back, so that files and memory are of the same run again.
  /// Absent: not compared.
  std::optional<std::uint64_t> executions_known;
  std::string stdin_data;
  std::vector<std::string> args;
  RunLimits limits;
  AfterError after_error = AfterError::kKeep;
  std::stop_token cancel;
};

struct ExecuteResponse {  // what came of it
  Outcome outcome;
  std::uint64_t executions = 0;  ///< of the context, this one included
  std::string cwd;
  ContextState state = ContextState::kFresh;
  /// Why the memory is fresh, or what is missing from the restored one; empty when there is nothing
  /// to say.
  std::string note;
  /// Present if this run's memory was saved: time taken by finding, packing and storing what
  /// changed.
  std::optional<double> snapshot_ms;
  std::uint64_t snapshot_bytes_written = 0;
  std::optional<SnapshotInfo> snapshot;  ///< what is stored now
  WorkspaceDiff workspace;
};

/// Gives the contents of files the Interpreter lacks. Called at most once in a run, on the thread
/// of the run; what is unknown is left out.
using GetFiles = std::function<std::vector<WorkspaceFile>(const std::vector<std::string>& paths)>;

}  // namespace sw::runtime
