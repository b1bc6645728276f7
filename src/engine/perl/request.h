// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the driver is sent. Formats: guests/perl/driver/main.c. Cells are driver_request(…).

#include <string>

#include "sandbox_workers/engine/language.h"

namespace sw::engine {

/// boot.pl with the modules to import at hand.
std::string perl_boot_code(const Manifest& manifest);

}  // namespace sw::engine
