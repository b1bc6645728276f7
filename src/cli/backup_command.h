// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/caller.h"
#include "cli/data_folder.h"
#include "sandbox_workers/base/result.h"

namespace sw::cli {

/// Copies a data folder to a new one, also while a process uses it. Status 1 if something was
/// damaged, and the rest was copied.
Result<int> backup_command(const Caller& caller, DataFolder& folder, const std::string& target);

/// Checks a data folder that no process uses, and returns 1 if something is wrong.
Result<int> storage_check_command(const Caller& caller, const std::string& target);

}  // namespace sw::cli
