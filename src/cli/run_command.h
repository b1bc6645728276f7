// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/caller.h"
#include "cli/data_folder.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/protocol/profile.h"

namespace sw::cli {

/// What `sandbox-workers run` was asked to do.
struct RunCommandOptions {
  std::string language;             ///< empty: guessed
  std::optional<std::string> code;  ///< -c
  std::string file;                 ///< a path, "-" for stdin, or a folder with a main program
  std::vector<std::string> arguments;
  std::vector<std::string> env;  ///< NAME=value
  std::string stdin_file;        ///< "-": this process's; empty: none
  std::string workspace;
  AfterError on_error = AfterError::kKeep;
  std::optional<Durability> durability;  ///< absent: as the sandbox says
  std::chrono::nanoseconds wall_max{};
  std::chrono::nanoseconds cpu_max{};  ///< zero: none
  std::optional<std::uint64_t> memory_bytes_max;
  bool json = false;
  std::string sandbox;  ///< keep files and state in this sandbox of the data folder
  std::string context;  ///< of the sandbox; empty: the one named after the language
};

/// Runs the program and returns the exit status. An Error was not shown yet.
Result<int> run_command(const Caller& caller, DataFolder& folder, const RunCommandOptions& options);

}  // namespace sw::cli
