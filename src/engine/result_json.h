// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/engine/engine.h"
#include "sandbox_workers/engine/run.h"

namespace sw::engine {

/// What an answer says of the context that a cell ran in.
struct ContextReport {
  std::string id;
  std::string cwd;
  std::uint64_t executions = 0;
  std::string state;  ///< live, restored or fresh
  std::string note;   ///< why, when there is something to say
  /// Written to storage; absent: the memory was not saved
  std::optional<std::uint64_t> saved_bytes = {};
  std::optional<double> snapshot_ms = {};  ///< that took; absent: the same
  /// When the sandbox is destroyed if nobody uses it
  std::optional<std::int64_t> expires_at_ms = {};
};

/// What became of the files that a run left in its workspace folder.
struct WriteBackReport {
  /// Files, folders and links that were made, changed or removed
  std::size_t written = 0;
  std::vector<std::string> refused;  ///< what was left as it was, with the reason
  std::vector<std::string> left;     ///< what could not be removed
  std::string error;                 ///< why nothing was written; empty otherwise
};

/// The wire protocol's ExecutionResult as one line of JSON, in which no object has a key twice.
/// `out` and `err` are what was printed; bytes that are not UTF-8 become U+FFFD there. Beside the
/// protocol's fields: `ending`, `exitCode`, and in `usage` the times, the pages written and whether
/// output was truncated. One unit of fuel is one microsecond of CPU time.
std::string execution_result_json(const EngineInfo& info, const Run& request,
                                  const Outcome& outcome, std::string_view out,
                                  std::string_view err,
                                  const std::optional<ContextReport>& context = {},
                                  const std::optional<WriteBackReport>& files = {});

/// "completed", "guest-error", …
std::string_view ending_name(Ending ending);

}  // namespace sw::engine
