// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The groups of commands, as they are added to the parser.

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <utility>

#include "cli/command_line.h"

namespace sw::cli {

/// What the arguments say once they are parsed.
struct Chosen {
  std::filesystem::path folder;  ///< the data folder unless they name one
  Command command = {};
};

inline std::string not_empty(const std::string& text) {
  return text.empty() ? "must not be empty" : "";
}

/// `folder` is the default, and outlives the parser.
inline void add_data_option(CLI::App& command, std::filesystem::path& folder) {
  command.add_option("--data", folder, "Data folder")->capture_default_str();
}

/// `sandboxes …`, `contexts`, `snapshots`, `context …`
void add_sandbox_commands(CLI::App& app, Chosen& chosen);
/// `files …`
void add_files_commands(CLI::App& app, Chosen& chosen);

}  // namespace sw::cli
