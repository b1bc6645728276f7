// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "sandbox_workers/engine/language.h"

namespace sw::engine {

/// Perl, by the manifest in engines/perl; built by guests/perl.
std::unique_ptr<Language> make_perl(Manifest manifest);

}  // namespace sw::engine
