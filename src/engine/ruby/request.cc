// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/ruby/request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>

namespace sw::engine {

namespace {

void put_number(std::string& out, std::size_t value) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(value >> shift & 0xFF);
}

void put_string(std::string& out, std::string_view text) {
  put_number(out, text.size());
  out += text;
}

}  // namespace

std::string ruby_cell_request(const RunRequest& request, std::string_view file_name, bool fresh) {
  std::string out;
  out.reserve(request.code.size() + file_name.size() + 64);
  // One more than is wanted is enough to see that a value is too long. 0 would be no limit.
  constexpr std::uint64_t kLongest = UINT32_MAX - 1;
  put_number(out, static_cast<std::size_t>(std::min(request.limits.result_bytes_max, kLongest) + 1));
  put_string(out, request.code);
  put_string(out, file_name);
  put_string(out, fresh ? request.cwd : std::string());
  put_number(out, request.args.size());
  for (const std::string& argument : request.args) put_string(out, argument);
  put_number(out, request.env.size());
  for (const auto& [name, value] : request.env) {
    put_string(out, name);
    put_string(out, value);
  }
  return out;
}

std::string ruby_boot_source(const Manifest& manifest) {
  std::string source = fmt::format("modules = %w({})\n", fmt::join(manifest.imports, " "));
  for (const DriverFile& file : manifest.drivers) {
    if (file.name.ends_with("boot.rb")) source += file.content;
  }
  return source;
}

}  // namespace sw::engine
