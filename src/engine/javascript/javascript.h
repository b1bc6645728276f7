// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "engine/language.h"

namespace sw::engine {

/// JavaScript: QuickJS-NG, with the driver of engines/javascript.
Result<std::unique_ptr<Language>> make_javascript();

}  // namespace sw::engine
