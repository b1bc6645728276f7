// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "engine/language.h"

namespace sw::engine {

/// CPython. Errors: kInvalidArgument when the embedded manifest is wrong, which is our bug.
Result<std::unique_ptr<Language>> make_python();

}  // namespace sw::engine
