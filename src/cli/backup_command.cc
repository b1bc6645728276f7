// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/backup_command.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "cli/units.h"
#include "sandbox_workers/host.h"

namespace sw::cli {

namespace {

/// A young one has no database yet.
bool is_data_folder(const std::filesystem::path& folder) {
  std::error_code failed;
  return std::filesystem::exists(folder / "catalog.sqlite", failed) ||
         std::filesystem::exists(folder / "journal.0", failed);
}

}  // namespace

Result<int> backup_command(const Caller& caller, DataFolder& folder, const std::string& target) {
  // Whoever has the folder makes the copy.
  SW_TRY(auto host, folder.open_if_owned());
  // Whoever has the folder takes the commands of others, so runs beside the backup go on. What cannot be
  // opened can still be copied.
  if (!host && is_data_folder(folder.path())) {
    auto opened = folder.open_existing();
    if (!opened.ok() && is_in_use(opened.error())) return opened.error();
    if (opened.ok()) host = *std::move(opened);
  }
  const std::filesystem::path copy = caller.reach(target);
  SW_TRY(const BackupReport report, host ? host->back_up(copy) : back_up(folder.path(), copy));
  caller.streams.print("{} objects copied to {}\n", report.objects, target);
  for (const std::string& damaged : report.damaged) {
    caller.streams.tell(fmt::format("not copied: {}\n", damaged));
  }
  return report.damaged.empty() ? 0 : 1;
}

Result<int> storage_check_command(const Caller& caller, const std::string& target) {
  SW_TRY(const DataFolderCheck check, check_data_folder(caller.reach(target)));
  caller.streams.print("{} objects in {} layers; {} frames ({}) in the journal\n", check.objects,
                       check.layers, check.frames, show_bytes(check.journal_bytes));
  for (const std::string& problem : check.problems) caller.streams.print("{}\n", problem);
  if (check.problems.empty()) caller.streams.print("nothing is wrong\n");
  return check.problems.empty() ? 0 : 1;
}

}  // namespace sw::cli
