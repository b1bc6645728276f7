// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the driver is sent. Formats: guests/ruby/driver/main.c.

#include <string>
#include <string_view>

#include "sandbox_workers/engine/language.h"
#include "sandbox_workers/engine/run.h"

namespace sw::engine {

/// What driver_request(…) has.
std::string ruby_request(const Run& request, std::string_view file_name, bool fresh);

/// boot.rb with the modules to import at hand.
std::string ruby_boot_code(const Manifest& manifest);

}  // namespace sw::engine
