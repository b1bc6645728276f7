// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A folder of the host as the files of one run: its main program, what is loaded from it, what is
// written back.

#include <filesystem>
#include <optional>
#include <string>

#include "engine/result_json.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasi/clocks.h"
#include "wasi/host_folder.h"

namespace sw::cli {

/// The first name in the folder that is "main" and an ending we know.
Result<std::string> main_name(const std::filesystem::path& folder);
/// That program's text: a regular file, also through links that stay inside the folder.
Result<std::string> read_main(const std::filesystem::path& folder, const std::string& name);

/// Standard input to its end. Unlike /dev/stdin it may be a socket, as those that Node gives its
/// children are.
Result<std::string> read_stdin(std::size_t bytes_max);

/// Loads the folder whose files are under /workspace, and names on stderr what is left out. Nothing
/// when `folder` is empty.
Result<std::optional<wasi::HostFolder>> load_workspace(const std::string& folder,
                                                       const wasi::Clocks& clocks);

engine::WriteBackReport write_back(wasi::HostFolder& workspace);

/// On stderr, what was not written.
void show(const engine::WriteBackReport& report, const std::string& folder);

}  // namespace sw::cli
