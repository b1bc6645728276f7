// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/run.h"
#include "sandbox_workers/wasi/tree_limits.h"
#include "sandbox_workers/workspace/manifest.h"
#include "sandbox_workers/workspace/write_back_report.h"

namespace sw {

/// A folder of the host as the files of runs outside of sandboxes. Links in it are never followed.
///
///   run.files = folder.files();
///   SW_TRY(const Outcome outcome, host.run(run));
///   const WriteBackReport report = folder.write_back(outcome);
///
/// Threads: one at a time.
class WorkspaceFolder {
 public:
  /// Errors: kLimitExceeded past `limits`; those of reading the folder.
  static Result<WorkspaceFolder> load(const std::filesystem::path& folder,
                                      const wasi::TreeLimits& limits = {});
  /// Reads a text file of a folder that is not loaded. Follows links that stay in the folder.
  /// Errors: kInvalidArgument for what is not a file, or too large.
  static Result<std::string> read_text(const std::filesystem::path& folder, const std::string& name,
                                       std::size_t bytes_max);
  ~WorkspaceFolder();
  WorkspaceFolder(WorkspaceFolder&&) noexcept;
  WorkspaceFolder& operator=(WorkspaceFolder&&) noexcept;

  /// For Run::files.
  std::shared_ptr<const RunFiles> files();
  /// What could not be loaded, with the reason; `write_back` leaves it alone.
  const std::vector<std::string>& left_out() const;
  /// Makes the folder look as the run left the files. Each file is replaced as a whole: a reader
  /// sees the old content or the new. If WriteBackReport::error is set, the folder is as it was: as
  /// when somebody changed a file during the run that the run changed too.
  WriteBackReport write_back(const Outcome& outcome);

 private:
  struct Loaded;
  explicit WorkspaceFolder(std::unique_ptr<Loaded> loaded);
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace sw
