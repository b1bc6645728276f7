// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/conformance_command.h"

#include <fmt/format.h>

#include "cli/data_folder.h"
#include "sandbox_workers/testing/conformance.h"

namespace sw::cli {

namespace {

constexpr int kStatusViolation = 1;

/// True if the contract is kept.
Result<bool> check(Streams& streams, const Host& host, const std::string& language) {
  SW_TRY(const testing::ConformancePrograms programs, testing::built_in_programs(language));
  SW_TRY(const auto engine, host.load(language));
  const auto print = [&](const testing::CheckReport& report) {
    const char* const verdict = report.violation != nullptr ? "FAILED "
                                : report.skipped            ? "skipped"
                                                            : "ok     ";
    streams.print("{}  {}: {}\n", verdict, language,
                  report.violation ? report.violation->message : report.name);
    (void)streams.flush();
  };
  return testing::run_engine_conformance(engine, programs, {.on_check = print}).ok();
}

}  // namespace

Result<int> conformance_command(const Caller& caller, const std::vector<std::string>& names) {
  SW_TRY(const Host host, open_host(caller.streams));
  SW_TRY(const auto languages, chosen_languages(host, names));
  int status = 0;
  for (const LanguageInfo& language : languages) {
    SW_TRY(const bool kept, check(caller.streams, host, language.id));
    if (!kept) status = kStatusViolation;
  }
  return status;
}

}  // namespace sw::cli
