// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "sandbox_workers/engine/language.h"

namespace sw::engine {

/// QuickJS-NG, by the manifest and the driver in engines/javascript.
std::unique_ptr<Language> make_javascript(Manifest manifest);

}  // namespace sw::engine
