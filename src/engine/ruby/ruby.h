// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "sandbox_workers/engine/language.h"

namespace sw::engine {

/// Ruby, by the manifest in engines/ruby; built by guests/ruby.
std::unique_ptr<Language> make_ruby(Manifest manifest);

}  // namespace sw::engine
