// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Is what was typed a whole cell? A program in the language itself knows
// (engines/LANGUAGE/complete.*), and runs in a sandbox of its own.

#include <optional>
#include <string_view>

#include "sandbox_workers/engine/run.h"

namespace sw::engine {

/// The run that finds out whether `code` is a whole cell; nullopt: it is, as far as can be told.
std::optional<Run> completeness_check(std::string_view language, std::string_view code);

/// What came of that run.
bool says_complete(const Outcome& outcome);

}  // namespace sw::engine
