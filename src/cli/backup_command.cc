// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/backup_command.h"

#include <fmt/format.h>

#include "sandbox_workers/host.h"

namespace sw::cli {

Result<int> backup_command(const Caller& caller, DataFolder& folder, const std::string& target) {
  // Whoever has the folder makes the copy.
  SW_CHECK_OK(folder.open_if_owned());
  SW_TRY(const BackupReport report, back_up(folder.path(), caller.reach(target)));
  caller.streams.print("{} objects copied to {}\n", report.objects, target);
  for (const std::string& damaged : report.damaged) {
    caller.streams.tell(fmt::format("not copied: {}\n", damaged));
  }
  return report.damaged.empty() ? 0 : 1;
}

}  // namespace sw::cli
