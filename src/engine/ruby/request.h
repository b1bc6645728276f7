// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the driver is sent. Formats: guests/ruby/driver/main.c.

#include <string>
#include <string_view>

#include "sandbox_workers/engine/manifest.h"
#include "sandbox_workers/engine/outcome.h"

namespace sw::engine {

/// `fresh`: the first cell after the image or a saved state, which goes to the request's folder.
std::string ruby_cell_request(const RunRequest& request, std::string_view file_name, bool fresh);

/// Ruby source: boot.rb with the modules to import at hand.
std::string ruby_boot_source(const Manifest& manifest);

}  // namespace sw::engine
