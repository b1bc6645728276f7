// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/open_host.h"

#include <fmt/format.h>

#include "cli/interrupt.h"
#include "cli/progress.h"

namespace sw::cli {

namespace {

/// Shows the steps that are told, until the last copy of it is gone.
bake::Progress show_progress() {
  // A display draws as long as it lives, so it begins with the first step.
  auto display = std::make_shared<std::unique_ptr<ProgressDisplay>>();  // shared by its copies
  return [display](std::string_view step, std::chrono::seconds expected) {
    if (step.empty()) return display->reset();
    if (!*display) *display = std::make_unique<ProgressDisplay>();
    (*display)->begin_step(step, expected);
  };
}

Result<Host> open(HostOptions options) {
  const SignalFreeThreads signals;
  options.on_progress = show_progress();
  return Host::open(std::move(options));
}

}  // namespace

Result<Host> open_host(const std::filesystem::path& data_folder) {
  return open({.data_folder = data_folder});
}

Result<std::optional<Host>> open_existing_host(const std::filesystem::path& data_folder) {
  auto host = open({.data_folder = data_folder, .must_exist = true});
  if (host.ok()) return std::optional(*std::move(host));
  if (host.error().code == ErrorCode::kNotFound) return std::optional<Host>();
  return std::move(host).error();
}

Result<std::vector<LanguageInfo>> chosen_languages(const Host& host,
                                                   const std::vector<std::string>& names) {
  if (names.empty()) return host.languages();
  std::vector<LanguageInfo> languages;
  for (const std::string& name : names) {
    SW_TRY(LanguageInfo language, host.language(name));
    languages.push_back(std::move(language));
  }
  return languages;
}

Result<Sandbox> open_sandbox(const std::filesystem::path& data_folder, const std::string& id) {
  SW_CHECK_OK(check_sandbox_id(id));
  SW_TRY(const auto host, open_existing_host(data_folder));
  if (host) {
    SW_TRY(const bool exists, host->has_sandbox(id));
    if (exists) return host->sandbox(id);
  }
  return Error{ErrorCode::kNotFound, fmt::format("no sandbox '{}' in {}", id, data_folder.native()),
               0};
}

}  // namespace sw::cli
