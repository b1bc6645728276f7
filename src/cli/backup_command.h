// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "sandbox_workers/base/result.h"

namespace sw::cli {

/// Where durable state lies unless it is said: $SANDBOX_WORKERS_DATA,
/// $XDG_DATA_HOME/sandbox-workers or
/// ~/.local/share/sandbox-workers.
std::filesystem::path default_data_folder();

/// Copies a data folder to a new one, also while a process uses it. Status 1 if something was
/// damaged, and the rest was copied.
Result<int> backup_command(const std::filesystem::path& data_folder,
                           const std::filesystem::path& destination);

}  // namespace sw::cli
