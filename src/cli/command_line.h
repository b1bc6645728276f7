// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// From arguments to a command. A new command is one more function that adds it to the parser,
// beside the others in command_line.cc or sandbox_options.cc.

#include <filesystem>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "cli/caller.h"
#include "cli/data_folder.h"
#include "sandbox_workers/base/result.h"

namespace sw::cli {

/// A command that was understood.
struct Command {
  /// Returns the exit status.
  std::function<Result<int>(const Caller&, DataFolder&)> perform;
  std::filesystem::path data_folder = {};  ///< empty: it keeps nothing
  /// Another process that has the folder can do it.
  bool can_be_asked = true;
  bool reads_input = false;
};

/// Where durable state lies unless it is said: $SANDBOX_WORKERS_DATA,
/// $XDG_DATA_HOME/sandbox-workers or ~/.local/share/sandbox-workers.
std::filesystem::path default_data_folder();

/// The command, or the exit status of arguments that are wrong or ask for help, which the caller
/// was told. `folder` is the data folder unless they name one.
std::variant<Command, int> parse_command(const Caller& caller, const std::filesystem::path& folder,
                                         const std::vector<std::string>& arguments);

/// Runs a command of this process. Returns the exit status.
int perform_command(const Caller& caller, const std::vector<std::string>& arguments);

/// Runs a command that another process asked for, with the host of `folder`. Returns the exit
/// status.
int perform_for_other(const Caller& caller, DataFolder& folder,
                      const std::vector<std::string>& arguments);

}  // namespace sw::cli
