// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Between a folder of the host and a tree in memory: load it, see what a run changed, write that back.
// Never follows a link on the host below the folder itself.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "wasi/tree.h"

namespace sw::wasi {

/// Copies files, folders, links and modification times below `host` into `directory`. Returns the paths it left
/// out (sockets, devices, names that are not UTF-8, files that changed into something else meanwhile).
/// Errors: kLimitExceeded past the tree's limits.
Result<std::vector<std::string>> copy_host_folder(const std::filesystem::path& host, Tree& tree, Node& directory,
                                                  std::uint64_t now_ns);

struct Change {
  enum class Kind : std::uint8_t { kCreated, kModified, kRemoved };
  Kind kind = Kind::kModified;
  FileType type = FileType::kRegularFile;  ///< what is there now; of kRemoved, what was
  std::string path;                        ///< relative to the tree's root
  bool operator==(const Change&) const = default;
};

/// A host folder loaded into a tree, and what it looked like then.
class HostFolder {
 public:
  static Result<HostFolder> load(const std::filesystem::path& host, const TreeLimits& limits,
                                 std::uint64_t now_ns);

  const std::shared_ptr<Tree>& tree() const { return tree_; }
  /// Paths that could not be loaded; they are left alone by write_back.
  const std::vector<std::string>& skipped() const { return skipped_; }

  /// What differs from the last load or write_back, by path. A file written to with the bytes it had is the same.
  std::vector<Change> changes() const;

  struct WriteBack {
    std::vector<Change> written;
    std::vector<std::string> refused;  ///< links that would lead out of the folder, with the reason
  };
  /// Makes the host folder look like the tree. Each file is replaced whole (a reader sees the old content or
  /// the new). Stops at the first error; calling it again goes on.
  Result<WriteBack> write_back();

 private:
  struct Known {
    FileType type = FileType::kUnknown;
    SharedBytes bytes;   // of a file
    std::string target;  // of a link
  };
  using Listing = std::map<std::string, Known>;

  Listing list() const;
  static std::vector<Change> compare(const Listing& before, const Listing& after);

  std::filesystem::path host_;
  std::shared_ptr<Tree> tree_;  // shared with the runs that use it
  std::vector<std::string> skipped_;
  Listing known_;
};

}  // namespace sw::wasi
