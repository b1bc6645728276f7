// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "engine/manifest.h"
#include "engine/outcome.h"

namespace sw::engine {

/// The wire protocol's ExecutionResult as JSON text. `out` and `err` are what was printed; bytes that are not
/// UTF-8 become U+FFFD there. Beside the protocol's fields: `ending`, `exitCode`, and in `usage` the times, the
/// pages written and whether output was truncated. One unit of fuel is one microsecond of CPU time.
std::string execution_result_json(const Manifest& manifest, const RunRequest& request, const Outcome& outcome,
                                  std::string_view out, std::string_view err);

/// "completed", "guest-error", …
std::string_view ending_name(Ending ending);

}  // namespace sw::engine
