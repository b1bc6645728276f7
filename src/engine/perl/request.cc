// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/perl/request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/driver_guest.h"

namespace sw::engine {

std::string perl_boot_code(const Manifest& manifest) {
  return fmt::format("my @modules = qw({});\n{}", fmt::join(manifest.imports, " "),
                     driver_file(manifest, "boot.pl"));
}

}  // namespace sw::engine
