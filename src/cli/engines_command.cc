// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/engines_command.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "cli/load_engine.h"
#include "cli/units.h"
#include "engine/embedded_engine.h"
#include "sandbox_workers/engine/all_languages.h"

namespace sw::cli {

namespace {

boost::json::object to_json(const engine::Manifest& manifest, const engine::BakeStatus& status) {
  return {{"language", manifest.language},  {"name", manifest.name},
          {"engine", manifest.engine},      {"version", manifest.version},
          {"licence", manifest.licence},    {"build", status.build},
          {"baked", status.baked},          {"packageBytes", status.package_bytes},
          {"codeBytes", status.code_bytes}, {"imageBytes", status.image_bytes}};
}

std::string size_or_dash(std::uint64_t bytes) { return bytes == 0 ? "-" : show_bytes(bytes); }

constexpr const char* kRow = "{:<12} {:<44} {:<9} {:>9} {:>9} {:>9}  {:<6} {}\n";

}  // namespace

Result<int> engines_command(bool json) {
  SW_TRY(const auto machine, engine::Machine::create());
  SW_TRY(const auto languages, engine::all_languages());
  boost::json::array list;
  if (!json)
    fmt::print(kRow, "LANGUAGE", "ENGINE", "VERSION", "PACKAGE", "CODE", "IMAGE", "BAKED",
               "LICENCE");
  for (const auto& language : languages) {
    const engine::Manifest& manifest = language->manifest();
    const engine::BakeStatus status =
        engine::EmbeddedEngine::status(machine->environment(), *language);
    if (json) {
      list.push_back(to_json(manifest, status));
    } else {
      fmt::print(kRow, manifest.language, manifest.engine, manifest.version,
                 size_or_dash(status.package_bytes), size_or_dash(status.code_bytes),
                 size_or_dash(status.image_bytes), status.baked ? "yes" : "no", manifest.licence);
    }
  }
  if (json) fmt::print("{}\n", boost::json::serialize(list));
  return 0;
}

Result<std::vector<std::unique_ptr<engine::Language>>> chosen_languages(
    const std::vector<std::string>& names) {
  if (names.empty()) return engine::all_languages();
  std::vector<std::unique_ptr<engine::Language>> languages;
  for (const std::string& name : names) {
    SW_TRY(auto language, engine::find_language(name));
    languages.push_back(std::move(language));
  }
  return languages;
}

Result<int> bake_command(const std::vector<std::string>& names) {
  SW_TRY(auto languages, chosen_languages(names));
  SW_TRY(const auto machine, engine::Machine::create());
  for (auto& language : languages) {
    const std::string name = language->manifest().language;
    SW_TRY(const auto engine, load_engine(*machine, std::move(language)));
    fmt::print("{} is ready ({})\n", name, engine->info().build);
  }
  return 0;
}

}  // namespace sw::cli
