// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a Sandbox and the Interpreters behind its bindings say to each other, protocol version 1.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sandbox_workers/engine/run.h"
#include "sandbox_workers/protocol/context_version.h"

namespace sw::protocol {

struct ExecuteResponse;
template <class Answer>
class JointCommit;

inline constexpr int kProtocolVersion = 1;

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
  /// Whose memory is saved, as HistoryEntry::step. Absent: nothing is, or it is not known.
  std::optional<std::uint64_t> step = {};
};

/// A state of a context's memory that is kept under a name.
struct Checkpoint {
  std::string name;
  std::int64_t taken_at_ms = 0;
};

/// A step of a context that can be gone back to.
struct HistoryEntry {
  std::uint64_t step = 0;               ///< the run: the value of `executions` after it
  std::int64_t taken_at_ms = 0;         ///< since the epoch
  std::string code = {};                ///< the first line of it that is not blank, if need be cut
  std::uint64_t bytes = 0;              ///< that storing its memory took
  std::vector<std::string> files = {};  ///< some of those that it wrote or deleted
  std::uint64_t files_changed = 0;      ///< how many there were
  bool current = false;                 ///< the context's saved memory is that after this step
  std::vector<std::string> checkpoints = {};
};

/// A cell for a context: `run` with the context's id, its environment merged, the sandbox's files,
/// and how it is named in tracebacks if not "<cell N>", as `executions` counts it.
struct ExecuteArgs {
  Run run;
  /// How many runs of the context the Sandbox knows of. An Interpreter that is one ahead (its answer
  /// was lost) takes that run back, so that files and memory are of the same run again. Absent: not
  /// compared.
  std::optional<std::uint64_t> executions_known = {};
  /// For Interpreters of this program: to store the run together with the Sandbox. Others leave it
  /// alone.
  JointCommit<ExecuteResponse>* joint = nullptr;
};

struct ExecuteResponse {
  /// Its `context` and `files` are set, its `cwd` is a folder in /workspace.
  Outcome outcome;
  std::optional<SnapshotInfo> snapshot = {};  ///< what is stored now
};

}  // namespace sw::protocol
