// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files of sandboxes, looked at and copied from outside.

#include <string>

#include "cli/caller.h"
#include "cli/data_folder.h"
#include "sandbox_workers/base/result.h"

namespace sw::cli {

struct FilesOptions {
  std::string sandbox = {};
  std::string path = {};  ///< in the sandbox; empty: not given
  std::string host = {};  ///< on the host; empty: not given
  std::string from = {};  ///< of `cp`: SANDBOX:PATH, or on the host
  std::string to = {};    ///< the same
  bool recursive = false;
  bool json = false;
};

/// Lists a folder, or one file.
Result<int> files_ls_command(const Caller& caller, DataFolder& folder, const FilesOptions& options);
/// Prints a file.
Result<int> files_cat_command(const Caller& caller, DataFolder& folder,
                              const FilesOptions& options);
/// Copies a file to the host, by default into the working directory.
Result<int> files_get_command(const Caller& caller, DataFolder& folder,
                              const FilesOptions& options);
/// Copies a file, or "-", stdin, into a sandbox, by default into /workspace. Makes the sandbox.
Result<int> files_put_command(const Caller& caller, DataFolder& folder,
                              const FilesOptions& options);
/// Deletes a file, or a folder with all that is in it.
Result<int> files_rm_command(const Caller& caller, DataFolder& folder, const FilesOptions& options);
/// Copies files and folders between host and sandbox, and between sandboxes.
Result<int> files_cp_command(const Caller& caller, DataFolder& folder, const FilesOptions& options);

}  // namespace sw::cli
