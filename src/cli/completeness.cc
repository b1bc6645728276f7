// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/completeness.h"

#include <fmt/format.h>

#include "engine/embedded_files.h"

namespace sw::cli {

namespace {

// Parsing takes milliseconds; code for which it takes longer is run as it is.
constexpr std::chrono::seconds kTimeMax{2};

}  // namespace

Completeness::Completeness(std::shared_ptr<engine::Engine> engine) : engine_(std::move(engine)) {
  const std::string begin = fmt::format("engines/{}/complete.", engine_->info().language);
  for (const engine::EmbeddedFile& file : engine::embedded_files()) {
    if (file.path.starts_with(begin)) program_ = file.content;
  }
}

bool Completeness::is_complete(std::string_view source) {
  if (program_.empty() || source.find('\0') != std::string_view::npos) return true;
  Run request;
  request.code = program_;
  request.env = {{"SOURCE", std::string(source)}};
  request.limits.wall_max = kTimeMax;
  RunOutput ignored;
  Result<Outcome> outcome = Error{};
  const auto ran = engine_->on_guest_thread([&] { outcome = engine_->run(request, ignored); });
  if (!ran.ok() || !outcome.ok() || !outcome->value) return true;
  const std::string& answer = outcome->value->text;
  return answer != "false" && answer != "False" && answer != "0" && answer != "\"\"";
}

}  // namespace sw::cli
