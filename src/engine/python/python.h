// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "sandbox_workers/engine/language.h"

namespace sw::engine {

/// CPython, by the manifest in engines/python.
std::unique_ptr<Language> make_python(Manifest manifest);

}  // namespace sw::engine
