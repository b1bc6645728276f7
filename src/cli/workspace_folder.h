// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A folder of the host as the files of one run: its main program, what is loaded from it, what is
// written back.

#include <filesystem>
#include <optional>
#include <string>

#include "cli/streams.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/host/workspace_folder.h"

namespace sw::cli {

/// The first name in the folder that is "main" and an ending we know.
Result<std::string> main_name(const std::filesystem::path& folder);

/// Loads the folder whose files are under /workspace, and names on stderr what is left out. Nothing
/// when `folder` is empty.
Result<std::optional<WorkspaceFolder>> load_workspace(const Streams& streams,
                                                      const std::string& folder);

/// The same, with as many of the reasons as anybody reads.
WriteBackReport write_back(WorkspaceFolder& workspace, const Outcome& outcome);

/// On stderr, what was not written.
void show(const Streams& streams, const WriteBackReport& report, const std::string& folder);

}  // namespace sw::cli
