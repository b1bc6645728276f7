// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fetching guest packages: with the registry's own client (which knows the machine's mirrors and proxies),
// checked against the manifest's sha256, unpacked to the files the manifest names.

#include <chrono>
#include <filesystem>
#include <functional>
#include <string_view>

#include "base/result.h"
#include "engine/manifest.h"

namespace sw::engine {

/// Told what is being done from now on, and about how long that takes on two cores (zero: not worth saying).
using Progress = std::function<void(std::string_view step, std::chrono::seconds expected)>;

/// Puts the package's files into `folder` (which exists and is empty), under their `name`s.
/// Errors: kUnavailable when the client is missing or fails (its last lines are in the message); kCorrupt when
/// a digest differs.
Result<void> fetch_package(const Package& package, const std::filesystem::path& folder, const Progress& progress);

}  // namespace sw::engine
