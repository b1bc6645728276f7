// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/language.h"

namespace sw::cli {

/// The named languages, or all.
Result<std::vector<std::unique_ptr<engine::Language>>> chosen_languages(
    const std::vector<std::string>& names);

/// Lists the languages: engine, version, licence, sizes, baked or not.
Result<int> engines_command(bool json);

/// Bakes the named languages, or all.
Result<int> bake_command(const std::vector<std::string>& languages);

}  // namespace sw::cli
