// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/workspace/workspace.h"

namespace sw {

/// What became of the files that runs left in a workspace that was loaded from a folder.
struct WriteBackReport {
  std::size_t written = 0;  ///< files, folders and links that were made, changed or removed
  std::vector<std::string> refused;  ///< what was left as it was, with the reason
  std::vector<std::string> left;     ///< what could not be removed, with the reason
};

/// A folder of the host as the workspace of runs outside of sandboxes (Run::workspace). Links in it
/// are never followed.
/// Threads: one at a time, and not while a run uses it.
class WorkspaceFolder {
 public:
  /// Errors: kLimitExceeded past `limits`; those of reading the folder.
  static Result<WorkspaceFolder> load(const std::filesystem::path& folder,
                                      const wasi::TreeLimits& limits = {});
  ~WorkspaceFolder();
  WorkspaceFolder(WorkspaceFolder&&) noexcept;
  WorkspaceFolder& operator=(WorkspaceFolder&&) noexcept;

  const std::shared_ptr<Workspace>& workspace() const;
  /// What could not be loaded, with the reason; `write_back` leaves it alone.
  const std::vector<std::string>& left_out() const;
  /// Makes the folder look like the workspace. Each file is replaced whole: a reader sees the old
  /// content or the new. After an Error the folder is as it was.
  /// Errors: kConflict if the folder has changed meanwhile where something is to be written.
  Result<WriteBackReport> write_back();

 private:
  struct Loaded;
  explicit WorkspaceFolder(std::unique_ptr<Loaded> loaded);
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace sw
