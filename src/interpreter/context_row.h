// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"

namespace sw::interpreter {

/// What is stored of a context beside its memory.
struct ContextRow {
  std::string cwd = "/workspace";
  std::int64_t created_ms = 0;
  std::int64_t last_used_ms = 0;
  std::uint64_t executions = 0;
  /// The run whose end the saved memory shows; absent: no memory is saved.
  std::optional<std::uint64_t> saved_execution;
  std::int64_t saved_ms = 0;

  /// What the run that `executions` counts last began with: enough to take it back. Absent after
  /// anything else than a run.
  struct Before {
    std::string cwd;
    std::optional<std::uint64_t> saved_execution;
    /// The run was rolled back on request: it left no memory, and what is saved is that of the run
    /// before it.
    bool rolled_back = false;
  };
  std::optional<Before> before;

  /// True when runs have ended since whose effects on memory are not saved.
  bool stale() const { return saved_execution && *saved_execution != executions; }
};

Bytes encode(const ContextRow& row);
/// Errors: kCorrupt.
Result<ContextRow> decode_context_row(BytesView bytes);

}  // namespace sw::interpreter
