// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/engines_command.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "cli/data_folder.h"
#include "cli/units.h"

namespace sw::cli {

namespace {

namespace json = boost::json;

json::object to_json(const PreparedLanguage& language) {
  return {{"language", language.id},          {"name", language.name},
          {"engine", language.engine},        {"version", language.version},
          {"licence", language.licence},      {"build", language.build},
          {"baked", language.prepared},       {"packageBytes", language.package_bytes},
          {"codeBytes", language.code_bytes}, {"imageBytes", language.image_bytes}};
}

std::string size_or_dash(std::uint64_t bytes) { return bytes == 0 ? "-" : show_bytes(bytes); }

constexpr const char* kRow = "{:<12} {:<44} {:<9} {:>9} {:>9} {:>9}  {:<6} {}\n";

}  // namespace

Result<int> engines_command(const Caller& caller, bool json) {
  SW_TRY(const Host host, open_host(caller.streams));
  SW_TRY(const auto languages, host.prepared());
  if (json) {
    json::array list;
    for (const PreparedLanguage& language : languages) list.push_back(to_json(language));
    caller.streams.print("{}\n", json::serialize(list));
    return 0;
  }
  caller.streams.print(kRow, "LANGUAGE", "ENGINE", "VERSION", "PACKAGE", "CODE", "IMAGE", "BAKED",
                       "LICENCE");
  for (const PreparedLanguage& language : languages) {
    caller.streams.print(kRow, language.id, language.engine, language.version,
                         size_or_dash(language.package_bytes), size_or_dash(language.code_bytes),
                         size_or_dash(language.image_bytes), language.prepared ? "yes" : "no",
                         language.licence);
  }
  return 0;
}

Result<int> bake_command(const Caller& caller, const std::vector<std::string>& names) {
  SW_TRY(const Host host, open_host(caller.streams));
  SW_TRY(const auto languages, chosen_languages(host, names));
  for (const LanguageInfo& language : languages) {
    SW_TRY(const auto engine, host.load(language.id));
    caller.streams.print("{} is ready ({})\n", language.id, engine->info().build);
    (void)caller.streams.flush();
  }
  return 0;
}

}  // namespace sw::cli
