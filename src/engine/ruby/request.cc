// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/ruby/request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/driver_guest.h"

namespace sw::engine {

std::string ruby_request(const Run& request, std::string_view file_name, bool fresh) {
  // Code without a file is called as its cell is, so that __FILE__ == $0.
  const bool has_file = request.args.empty() || request.args.front() != "-c";
  return driver_request(request, file_name, fresh, has_file ? std::string_view() : file_name);
}

std::string ruby_boot_code(const Manifest& manifest) {
  return fmt::format("modules = %w({})\n{}", fmt::join(manifest.imports, " "),
                     driver_file(manifest, "boot.rb"));
}

}  // namespace sw::engine
