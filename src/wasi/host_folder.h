// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Between a folder of the host and a tree in memory: load it, see what a run changed, write that
// back. Never follows a link on the host below the folder itself.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/base/unique_fd.h"
#include "sandbox_workers/wasi/tree.h"
#include "wasi/host_access.h"
#include "wasi/tree_state.h"

namespace sw::wasi {

/// Copies files, folders, links and modification times below `host` into `directory`. Returns the
/// paths it left out, ready to be shown: sockets, devices, what cannot be read, names that are not
/// UTF-8, files that changed into something else meanwhile, and what a write-back that was killed
/// has left, unless another one is under way.
/// Errors: kLimitExceeded past the tree's limits.
Result<std::vector<std::string>> copy_host_folder(const std::filesystem::path& host, Tree& tree,
                                                  Node& directory, std::uint64_t now_ns);

/// A host folder loaded into a tree, and what it looked like then.
class HostFolder {
 public:
  static Result<HostFolder> load(const std::filesystem::path& host, const TreeLimits& limits,
                                 std::uint64_t now_ns);

  const std::shared_ptr<Tree>& tree() const { return tree_; }
  /// What could not be loaded, ready to be shown; write_back leaves it alone.
  const std::vector<std::string>& skipped() const { return skipped_; }

  /// What differs from the last load or write_back, by path. A file written to with the bytes it
  /// had is the same.
  std::vector<Change> changes() const;

  struct WriteBack {
    std::vector<Change> written;
    std::vector<std::string>
        refused;  ///< links that would lead out of the folder, with the reason, ready to be shown
    /// What could not be removed although nothing needs it, the same
    std::vector<std::string> left;
  };
  /// Makes the host folder look like the tree, except for what is refused. Each file is replaced
  /// whole: a reader sees the old content or the new. After an error the folder is as it was; the
  /// message names all that is in the way. Errors: kConflict when the host differs, where something
  /// is to be changed, from what was loaded.
  Result<WriteBack> write_back();

 private:
  void look_again(const std::vector<Change>& changes);

  UniqueFd folder_;
  std::shared_ptr<Tree> tree_;  // shared with the runs that use it
  std::vector<std::string> skipped_;
  HostEntries loaded_;
  TreeState known_;
};

}  // namespace sw::wasi
