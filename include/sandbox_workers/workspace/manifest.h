// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How two copies of a sandbox's files are kept equal. Whoever runs code gets the files as they are
// when the run begins, and answers with what the run changed. Within a process the files are a state
// (wasi::TreeState), whose versions share what is equal in them; from another one comes a manifest,
// and contents are fetched.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasi/content.h"
#include "sandbox_workers/wasi/tree_limits.h"

namespace sw::wasi {
class TreeState;
}

namespace sw {

/// What the workspace of a server's sandbox may hold, by default.
inline constexpr wasi::TreeLimits kWorkspaceLimits{.file_bytes_max = std::uint64_t{1} << 20,
                                                   .tree_bytes_max = std::uint64_t{16} << 20,
                                                   .entries_max = 4096};

/// All paths are absolute and begin with "/workspace/".
struct WorkspaceFile {
  std::string path;
  /// Shared with the tree it came from until one of the two changes it
  wasi::SharedBytes data = {};
  std::int64_t updated_at_ms = 0;  ///< since the epoch
};

/// What a workspace holds, without any contents.
struct WorkspaceManifest {
  std::vector<std::string> dirs = {};  ///< all but /workspace itself, sorted
  /// Path to content_hash; to an empty text to have the content fetched in any case.
  std::map<std::string, std::string> files = {};
  std::map<std::string, std::string> links = {};  ///< symbolic links: path to target
};

/// What a run did to a workspace. What it left alone is not in it.
struct WorkspaceDiff {
  std::vector<std::string> dirs = {};             ///< folders that it made
  std::vector<WorkspaceFile> files = {};          ///< that it made or changed, also by a touch
  std::map<std::string, std::string> links = {};  ///< that it made or changed: path to target
  /// Where there was something before and is nothing after it. What was in a folder that is removed
  /// is named itself.
  std::vector<std::string> removed = {};

  bool empty() const { return dirs.empty() && files.empty() && links.empty() && removed.empty(); }
};

/// 16 lower-case hexadecimal digits. It tells versions of a file apart; it does not protect
/// against people who construct two files with one hash.
std::string content_hash(BytesView bytes);

/// Gives the contents of files that a copy lacks. What is unknown is left out.
using GetFiles =
    std::function<Result<std::vector<WorkspaceFile>>(const std::vector<std::string>& paths)>;

/// The files that a run finds in /workspace.
struct RunFiles {
  /// The sandbox has no files: all access to /workspace is EACCES
  bool disabled = false;
  /// The limits for guests; absent: those that the mirror was made with.
  std::optional<wasi::TreeLimits> limits = {};
  /// All there is; shared with the sandbox. Null for a sandbox in another process.
  std::shared_ptr<const wasi::TreeState> state = {};
  /// All there is in that one.
  WorkspaceManifest manifest = {};
  /// Called at most once in a run, on its thread, for what the guest's copy lacks. Must not throw.
  GetFiles get_files = {};
};

/// The manifest of `state`, and the contents of some of its files, for a Worker in another process.
WorkspaceManifest manifest_of(const wasi::TreeState& state);
std::vector<WorkspaceFile> workspace_files(const wasi::TreeState& state,
                                           const std::vector<std::string>& paths);

/// Whether `path` is a folder after a run that began with `files` and did `diff`. The path is absolute,
/// without ".." in it. Links are followed.
bool is_folder(const RunFiles& files, const WorkspaceDiff& diff, std::string_view path);

}  // namespace sw
