// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/backup_command.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "base/standard_streams.h"
#include "sandbox_workers/host.h"

namespace sw::cli {

namespace {

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

}  // namespace

std::filesystem::path default_data_folder() {
  if (const char* folder = variable("SANDBOX_WORKERS_DATA")) return folder;
  if (const char* folder = variable("XDG_DATA_HOME"))
    return std::filesystem::path(folder) / "sandbox-workers";
  const char* home = variable("HOME");
  return std::filesystem::path(home != nullptr ? home : "/") / ".local" / "share" /
         "sandbox-workers";
}

Result<int> backup_command(const std::filesystem::path& data_folder,
                           const std::filesystem::path& destination) {
  SW_TRY(const BackupReport report, back_up(data_folder, destination));
  fmt::print("{} objects copied to {}\n", report.objects, destination.native());
  for (const std::string& damaged : report.damaged) tell("not copied: {}\n", damaged);
  return report.damaged.empty() ? 0 : 1;
}

}  // namespace sw::cli
