// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fetching guest packages: with the registry's own client (which knows the machine's mirrors and
// proxies), checked against the manifest's sha256, unpacked to the files the manifest names.

#include <filesystem>

#include "sandbox_workers/bake/manifest.h"
#include "sandbox_workers/bake/progress.h"
#include "sandbox_workers/base/result.h"

namespace sw::bake {

/// Puts the package's files into `folder` (which exists and is empty), under their `name`s.
/// Errors: kUnavailable when the client is missing or fails (its last lines are in the message);
/// kCorrupt when a digest differs.
Result<void> fetch_package(const Package& package, const std::filesystem::path& folder,
                           const Progress& progress);

/// What becomes of `file`, the archive that was fetched.
Result<void> unpack_package(const Package& package, const std::filesystem::path& file,
                            const std::filesystem::path& folder);

}  // namespace sw::bake
