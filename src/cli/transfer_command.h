// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// `sandboxes export`, `sandboxes import`

#include <string>

#include "cli/caller.h"
#include "cli/data_folder.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/host.h"

namespace sw::cli {

struct TransferOptions {
  std::string sandbox;
  std::string file = "-";  ///< "-": stdin or stdout
  std::vector<std::string> contexts = {};
  bool without_history = false;
};

Result<int> export_command(const Caller& caller, DataFolder& folder,
                           const TransferOptions& options);
Result<int> import_command(const Caller& caller, DataFolder& folder,
                           const TransferOptions& options);

}  // namespace sw::cli
