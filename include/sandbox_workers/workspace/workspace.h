// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files of a sandbox, as hosts see them: what guests see at /workspace. A Sandbox holds the
// files; each instance has a mirror of them (mirror.h).

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasi/tree.h"
#include "sandbox_workers/workspace/manifest.h"

namespace sw::wasi {
class TreeState;
}

namespace sw {

/// What turned `before` into `after`, in the time of what differs if both are states of one tree.
/// Contents are compared byte by byte (shared ones by their address), not by hash.
WorkspaceDiff workspace_diff(const wasi::TreeState& before, const wasi::TreeState& after);

/// How a file's bytes become text.
enum class FileEncoding : std::uint8_t { kUtf8, kBase64 };

struct FileText {
  /// With kUtf8: without a byte-order mark, and U+FFFD for what is not UTF-8
  std::string content;
  std::uint64_t size = 0;  ///< of the file, in bytes
  FileEncoding encoding = FileEncoding::kUtf8;
  bool is_binary = false;  ///< not UTF-8, or with a NUL byte
  std::int64_t updated_at_ms = 0;
};

struct WorkspaceEntry {
  std::string path;
  wasi::FileType type = wasi::FileType::kRegularFile;
  std::uint64_t size = 0;          ///< 0 for folders
  std::int64_t updated_at_ms = 0;  ///< 0 for folders
};

/// Whether to include what is below the last name of a path.
enum class Depth : std::uint8_t { kOne, kAll };
/// Whether something must exist.
enum class IfMissing : std::uint8_t { kFail, kSucceed };

/// The Error for an operation on a file: its code is the errno's, its context has the errno's name.
Error file_error(wasi::Errno error, std::string message);

/// Operations of hosts take absolute paths and those relative to /workspace. ".." may not lead out
/// of it. Links are followed, within /workspace, except where the name itself is meant
/// (remove, rename, the last name of make_directory).
/// Threads: one at a time.
class Workspace {
 public:
  Workspace(const wasi::TreeLimits& limits, std::uint64_t now_ns);
  explicit Workspace(std::shared_ptr<wasi::Tree> tree) : tree_(std::move(tree)) {}

  /// The tree itself, which guests' open files point into: it stays the same object.
  const std::shared_ptr<wasi::Tree>& tree() const { return tree_; }

  /// No access to the files: EACCES for guests (through what they have open already, too) and for
  /// the operations of the host. What keeps two copies alike (remember, apply_…) works all the same.
  bool disabled() const { return tree_->disabled(); }
  void set_disabled(bool on) { tree_->set_disabled(on); }

  /// `path`, if relative taken from `cwd`, as an absolute one without ".", ".." and empty parts.
  /// Text only.
  /// Errors: kFileNotFound for "", kPermission when it leads out of /workspace.
  static Result<std::string> normalize(std::string_view path, std::string_view cwd = "/workspace");

  /// Errors: kFileNotFound, kIsDirectory, kNotDirectory.
  Result<FileText> read(std::string_view path, FileEncoding encoding) const;
  Result<WorkspaceFile> read_bytes(std::string_view path) const;

  /// Replaces a file's content, or makes the file.
  /// Errors, the first that applies: kIsDirectory for the root, kFileSystem (EINVAL) for bad
  /// base64, kFileTooLarge, kFileNotFound or kNotDirectory for what it should lie in, kIsDirectory,
  /// kNoSpace for the bytes, kNoSpace for the names.
  Result<void> write(std::string_view path, std::string_view content, FileEncoding encoding,
                     std::uint64_t now_ns);
  Result<void> write_bytes(std::string_view path, Bytes bytes, std::uint64_t now_ns);

  /// kAll: makes missing parents too, and succeeds if the folder exists; if it fails, some parents
  /// may have been made.
  /// Errors: kFileExists, kFileNotFound, kNotDirectory, kNoSpace.
  Result<void> make_directory(std::string_view path, Depth depth, std::uint64_t now_ns);

  /// Makes a symbolic link, or replaces one.
  /// Errors: kFileExists for anything else there; kFileNotFound, kNotDirectory, kNoSpace.
  Result<void> make_link(std::string_view path, std::string_view target, std::uint64_t now_ns);

  /// The entries of a folder, in the order they were made; kAll: those of a folder follow it.
  /// Errors: kFileNotFound, kNotDirectory.
  Result<std::vector<WorkspaceEntry>> list(std::string_view path, Depth depth) const;

  /// Folders need kAll, even empty ones.
  /// Errors: kPermission for the root, kFileNotFound, kNotDirectory, kIsDirectory.
  Result<void> remove(std::string_view path, Depth depth, IfMissing if_missing,
                      std::uint64_t now_ns);

  /// Replaces a file by a file, and an empty folder by a folder.
  /// Errors: kPermission for the root, kFileNotFound, kNotDirectory, kIsDirectory, kFileSystem when
  /// the target is not empty (ENOTEMPTY) and for a folder into itself (EINVAL).
  Result<void> rename(std::string_view from, std::string_view to, std::uint64_t now_ns);

  /// Also false for invalid paths.
  bool exists(std::string_view path) const;
  Result<WorkspaceEntry> stat(std::string_view path) const;

  /// All of it as it is now, for a run. `apply_diff` takes over what that did.
  std::shared_ptr<const RunFiles> for_run() const;

  /// Everything as it is now, sharing the contents: to restore it (TreeState::restore, for which
  /// the tree must not be disabled), or to learn later what a run did. As Tree::state, this takes the
  /// time of what changed.
  wasi::TreeState remember() const;
  WorkspaceDiff changes_since(const wasi::TreeState& before) const;

  /// Makes this a mirror of `manifest`, with the contents in `files`; returns the files whose content
  /// differs or is missing: get them and call again. What stays keeps its identity, so that it stays
  /// open in guests. Neither limits nor the flag hold it up. Hashes are kept with the files: those of
  /// unchanged files are not computed again.
  /// Errors: kInvalidArgument naming an invalid path.
  Result<std::vector<std::string>> apply_sync(const WorkspaceManifest& manifest,
                                              std::span<const WorkspaceFile> files,
                                              std::uint64_t now_ns);

  /// Takes over what a run did elsewhere, path by path: what the run left alone stays as it is,
  /// even if others changed it during the run; where both changed it, the run's version wins. A
  /// folder that the run removed stays if it now holds something else. Open files, limits and errors:
  /// as for apply_sync.
  Result<void> apply_diff(const WorkspaceDiff& diff, std::uint64_t now_ns);

 private:
  struct KnownHash {
    std::uint64_t version = 0;  // of the content it was computed from
    std::string hash;
  };
  const std::string& hash_of(const wasi::Node& file);
  void forget_gone_hashes();
  Result<std::string> usable(std::string_view path) const;
  Result<void> put(const std::string& path, Bytes bytes, std::uint64_t now_ns);

  std::shared_ptr<wasi::Tree> tree_;                     // shared with the runs
  std::unordered_map<std::uint64_t, KnownHash> hashes_;  // by inode
};

}  // namespace sw
