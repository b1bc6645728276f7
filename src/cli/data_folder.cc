// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/data_folder.h"

#include <fmt/format.h>

#include <memory>

#include "cli/interrupt.h"
#include "cli/progress.h"

namespace sw::cli {

bake::Progress show_progress(const Streams& streams) {
  // A display draws as long as it lives, so it begins with the first step.
  auto display = std::make_shared<std::unique_ptr<ProgressDisplay>>();  // shared by its copies
  return [display, &streams](std::string_view step, std::chrono::seconds expected) {
    if (step.empty()) return display->reset();
    if (!*display) *display = std::make_unique<ProgressDisplay>(streams);
    (*display)->begin_step(step, expected);
  };
}

Result<Host> open_host(const Streams& streams) {
  const SignalFreeThreads signals;
  return Host::open({.on_progress = show_progress(streams)});
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

Result<Sandbox> open_sandbox(DataFolder& folder, const std::string& id) {
  SW_CHECK_OK(check_sandbox_id(id));
  SW_TRY(const auto host, folder.open_existing());
  if (host) {
    SW_TRY(const bool exists, host->has_sandbox(id));
    if (exists) return host->sandbox(id);
  }
  return Error{ErrorCode::kNotFound,
               fmt::format("no sandbox '{}' in {}", id, folder.path().native()), 0};
}

}  // namespace sw::cli
