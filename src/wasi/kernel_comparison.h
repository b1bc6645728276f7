// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: the same operations on our file system and on a folder of the host's, whose kernel is
// the model.

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/base/unique_fd.h"
#include "wasi/test_clocks.h"

namespace sw::wasi {

/// Each answer and the trees must be the same. Nothing leads out of the folder: the kernel resolves
/// each path as if the folder were its root (RESOLVE_IN_ROOT), which is how our guests see theirs.
class KernelComparison {
 public:
  /// `folder` is empty and belongs to this object. `pick` chooses what is done: a number below its
  /// argument.
  KernelComparison(std::filesystem::path folder, std::function<std::size_t(std::size_t)> pick);

  /// Does something to both.
  void step();
  /// Compares what both hold now.
  void compare_trees();
  /// What differed first, and all that led there; empty: nothing did.
  const std::string& difference() const { return difference_; }

 private:
  /// The folder that a path's last component lies in, and that component with the slash after it.
  struct Split {
    UniqueFd folder;
    std::string last;
    Errno error = Errno::kSuccess;
  };

  std::string path();
  std::string target();
  UniqueFd open_on_host(const std::string& path, std::uint64_t flags, std::uint64_t mode = 0) const;
  Split split(const std::string& path) const;
  /// A call with the folder and the last component of a path.
  Errno on_host(const std::string& path, const std::function<int(int, const char*)>& call) const;

  void rename();
  void link();
  void symlink();
  void read_link();
  void stat();
  void open_and_write();
  void same(std::string what, Errno ours, Errno hosts);
  void differ(std::string_view what);
  std::map<std::string, std::string> our_listing();
  std::map<std::string, std::string> host_listing() const;

  std::filesystem::path folder_;
  std::function<std::size_t(std::size_t)> pick_;
  FixedClocks clocks_;
  std::shared_ptr<Tree> tree_;
  FileSystem files_;
  Place here_;
  UniqueFd host_;
  std::vector<std::string> log_;
  std::string difference_;
};

}  // namespace sw::wasi
