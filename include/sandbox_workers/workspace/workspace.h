// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files of a sandbox, as hosts see them: what guests see at /workspace. A Sandbox holds the files; each
// Interpreter has a mirror, and what differs travels between them as manifests and differences.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/wasi/content.h"
#include "sandbox_workers/wasi/tree.h"
#include "sandbox_workers/wasi/tree_state.h"

namespace sw {

/// All paths are absolute and begin with "/workspace/".
struct WorkspaceFile {
  std::string path;
  wasi::SharedBytes data;          ///< shared with the tree it came from until one of the two changes it
  std::int64_t updated_at_ms = 0;  ///< since the epoch
};

/// What a workspace holds, without any contents.
struct WorkspaceManifest {
  std::vector<std::string> dirs;             ///< all but /workspace itself, sorted
  std::map<std::string, std::string> files;  ///< path to content_hash
  std::map<std::string, std::string> links;  ///< symbolic links: path to target
  bool disabled = false;                     ///< the sandbox has no files: all access to /workspace is EACCES
};

/// What a run did to a workspace.
struct WorkspaceDiff {
  std::vector<std::string> dirs;     ///< all of them after the run, sorted
  std::vector<WorkspaceFile> files;  ///< created, then updated
  std::vector<std::string> deleted;
  std::map<std::string, std::string> links;  ///< all of them after the run
};

/// 16 lower-case hexadecimal digits. It tells versions of a file apart; it is no protection against people who
/// want two files with one hash.
std::string content_hash(BytesView bytes);

/// Threads: one at a time.
class Workspace {
 public:
  Workspace(const wasi::TreeLimits& limits, std::uint64_t now_ns);
  explicit Workspace(std::shared_ptr<wasi::Tree> tree) : tree_(std::move(tree)) {}

  /// The tree itself, which guests' open files point into: it stays the same object.
  const std::shared_ptr<wasi::Tree>& tree() const { return tree_; }

 private:
  std::shared_ptr<wasi::Tree> tree_;  // shared with the runs
};

}  // namespace sw
