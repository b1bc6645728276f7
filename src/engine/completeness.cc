// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/completeness.h"

#include <fmt/format.h>

#include "engine/embedded_files.h"

namespace sw::engine {

namespace {

// Parsing takes milliseconds; code for which it takes longer is run as it is.
constexpr std::chrono::seconds kTimeMax{2};

}  // namespace

std::optional<Run> completeness_check(std::string_view language, std::string_view code) {
  if (code.find('\0') != std::string_view::npos) return std::nullopt;
  const std::string begin = fmt::format("engines/{}/complete.", language);
  for (const EmbeddedFile& file : embedded_files()) {
    if (!file.path.starts_with(begin)) continue;
    Run run;
    run.language = language;
    run.code = file.content;
    run.env = {{"SOURCE", std::string(code)}};
    run.limits.wall_max = kTimeMax;
    return run;
  }
  return std::nullopt;
}

bool says_complete(const Outcome& outcome) {
  if (!outcome.value) return true;
  const std::string& answer = outcome.value->text;
  return answer != "false" && answer != "False" && answer != "0" && answer != "\"\"";
}

}  // namespace sw::engine
