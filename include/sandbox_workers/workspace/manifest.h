// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How two copies of a sandbox's files are kept equal: by manifests, contents and differences.
// Whoever runs code gets a manifest, asks for the contents it lacks, and answers with what the run
// changed.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasi/content.h"
#include "sandbox_workers/wasi/tree_limits.h"

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
  /// The sandbox has no files: all access to /workspace is EACCES
  bool disabled = false;
  /// The limits for guests; absent: those that the mirror was made with.
  std::optional<wasi::TreeLimits> limits = {};
};

/// What a run did to a workspace.
struct WorkspaceDiff {
  std::vector<std::string> dirs = {};  ///< all of them after the run, sorted
  /// Created, then updated (a file that was only touched counts)
  std::vector<WorkspaceFile> files = {};
  std::vector<std::string> deleted = {};          ///< files that are no longer files
  std::map<std::string, std::string> links = {};  ///< all of them after the run
};

/// 16 lower-case hexadecimal digits. It tells versions of a file apart; it does not protect
/// against people who construct two files with one hash.
std::string content_hash(BytesView bytes);

/// Gives the contents of files that a copy lacks. What is unknown is left out.
using GetFiles =
    std::function<Result<std::vector<WorkspaceFile>>(const std::vector<std::string>& paths)>;

/// The files that a run finds in /workspace.
struct RunFiles {
  WorkspaceManifest manifest;
  /// Called at most once in a run, on its thread, for what the guest's copy lacks. Must not throw.
  GetFiles get_files;
};

/// The difference of a run that changed nothing.
WorkspaceDiff no_difference(const WorkspaceManifest& manifest);

/// Whether `path` is a folder once `after` is applied: absolute, without ".." in it. Links are
/// followed.
bool is_folder(const WorkspaceDiff& after, std::string_view path);

}  // namespace sw
