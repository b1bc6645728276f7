// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "cli/caller.h"
#include "cli/data_folder.h"
#include "sandbox_workers/base/result.h"

namespace sw::cli {

struct ReplCommandOptions {
  std::string language;
  std::string sandbox;                  ///< empty: one in memory, which ends with the process
  std::string context;                  ///< empty: the one named after the language
  std::chrono::nanoseconds wall_max{};  ///< of a cell; zero: none
};

/// Returns the exit status.
Result<int> repl_command(const Caller& caller, DataFolder& folder,
                         const ReplCommandOptions& options);

}  // namespace sw::cli
