// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sandbox_workers/host.h"

namespace sw::cli {

/// A host whose threads leave signals to InterruptScope, and that shows on stderr how the preparation
/// of languages goes. An empty folder: in memory.
Result<Host> open_host(const std::filesystem::path& data_folder = {});

/// The same for a data folder that is there already; nothing if it is not.
Result<std::optional<Host>> open_existing_host(const std::filesystem::path& data_folder);

/// The named languages, or all.
Result<std::vector<LanguageInfo>> chosen_languages(const Host& host,
                                                   const std::vector<std::string>& names);

/// A sandbox of a data folder that is there already, for commands that only look or change something.
/// Errors: also kNotFound.
Result<Sandbox> open_sandbox(const std::filesystem::path& data_folder, const std::string& id);

}  // namespace sw::cli
