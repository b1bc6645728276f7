// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/language.h"

namespace sw::engine {

/// Every language this program has, in the order they are shown.
Result<std::vector<std::unique_ptr<Language>>> all_languages();

/// The language with this identifier or alias ("python", "py", "js", "node"; case does not matter).
/// Errors: kInvalidArgument naming the languages there are.
Result<std::unique_ptr<Language>> find_language(std::string_view name);

/// The language of a program: by the file's ending, else by a #! line.
/// Errors: kInvalidArgument saying how to name it.
Result<std::unique_ptr<Language>> guess_language(std::string_view file_name, std::string_view code);

}  // namespace sw::engine
