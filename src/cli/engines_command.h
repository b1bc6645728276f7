// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/caller.h"
#include "sandbox_workers/base/result.h"

namespace sw::cli {

/// Lists the languages: engine, version, licence, sizes, baked or not.
Result<int> engines_command(const Caller& caller, bool json);

/// Bakes the named languages, or all.
Result<int> bake_command(const Caller& caller, const std::vector<std::string>& languages);

}  // namespace sw::cli
