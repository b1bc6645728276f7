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
#include "sandbox_workers/workspace/write_back_report.h"

namespace sw::engine {

/// What the answer says beside the outcome.
struct ResultExtras {
  /// When the sandbox is destroyed if nobody uses it.
  std::optional<std::int64_t> expires_at_ms = {};
  std::optional<WriteBackReport> files = {};
};

/// The wire protocol's ExecutionResult as one line of JSON, in which no object has a key twice. In
/// what was printed (Outcome::out and err), bytes that are not UTF-8 become U+FFFD. Beside the
/// protocol's fields: `ending`, `exitCode`, and in `usage` the times, the pages written and whether
/// output was truncated. One unit of fuel is one microsecond of CPU time.
std::string execution_result_json(std::string_view language, std::string_view engine,
                                  const Run& run, const Outcome& outcome,
                                  const ResultExtras& extras = {});

/// "live", "restored", "fresh"
std::string_view context_state_name(ContextState state);

/// "completed", "guest-error", …
std::string_view ending_name(Ending ending);

}  // namespace sw::engine
