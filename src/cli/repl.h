// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The read-evaluate-print loop over one sandbox: cells of code, and commands that begin with a
// colon.

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "cli/caller.h"
#include "cli/line_reader.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/run.h"
#include "sandbox_workers/protocol/context_version.h"
#include "sandbox_workers/wasi/streams.h"

namespace sw::cli {

/// What the loop works on.
class ReplTarget {
 public:
  struct CellResult {
    Outcome outcome;
    std::string note;  ///< why the memory is not that of the last cell; empty: it is
  };
  struct File {
    std::string path;
    std::uint64_t bytes = 0;
    bool is_folder = false;
  };
  struct Context {
    std::string id;
    std::string language;
    std::uint64_t executions = 0;
    std::string memory;  ///< "saved", "stale", "not saved"
  };

  virtual ~ReplTarget() = default;
  virtual const std::string& language() const = 0;
  virtual bool is_complete(std::string_view code) = 0;
  /// Makes the context if it is new. Errors: kInvalidArgument for a name that cannot be one, and
  /// for a context in another language.
  virtual Result<void> open_context(const std::string& context) = 0;
  /// Runs a cell in a context, which is made if it is new.
  virtual Result<CellResult> run(const std::string& context, const std::string& code,
                                 std::stop_token stop, RunEvents& output) = 0;
  virtual Result<std::vector<File>> files() = 0;
  virtual Result<std::vector<Context>> contexts() = 0;
  virtual Result<VersionFiles> fork(const std::string& context, const std::string& new_context,
                                    const VersionOptions& options) = 0;
  virtual Result<VersionFiles> undo(const std::string& context, std::uint32_t runs,
                                    const VersionOptions& options) = 0;
  virtual Result<void> add_checkpoint(const std::string& context, const std::string& label) = 0;
  virtual Result<VersionFiles> restore(const std::string& context, const std::string& version,
                                       const VersionOptions& options) = 0;
  virtual Result<std::vector<std::string>> checkpoints(const std::string& context) = 0;
};

/// Until the end of input, `:quit`, or an exit in the code, whose status is returned. `context` is
/// where it begins.
int run_repl(const Caller& caller, LineReader& lines, ReplTarget& target, std::string context);

}  // namespace sw::cli
