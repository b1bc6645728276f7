// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/caller.h"
#include "sandbox_workers/base/result.h"

namespace sw::cli {

/// Checks that the named languages, or all, keep the engine contract, with the programs of
/// engines/LANGUAGE/conformance.json; a line a check. The status is 1 after a violation.
Result<int> conformance_command(const Caller& caller, const std::vector<std::string>& languages);

}  // namespace sw::cli
