// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files of a sandbox: what its guests see at /workspace.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/workspace/workspace.h"

namespace sw {

namespace host {
class Core;
}

class Sandbox;

/// What becomes of a file of the host that is in the way. A folder is never replaced.
enum class IfThere : std::uint8_t { kFail, kReplace };

/// Paths are absolute, or relative to /workspace; ".." may not lead out of it. What was written is
/// stored when the call returns. No call waits for a run: a run in progress sees the files as they
/// were when it began.
/// Errors: Workspace's of the same name, with `path` and `operation` in their context; those of a
/// sandbox. Threads: any.
class Files {
 public:
  Result<Bytes> read(std::string_view path) const;
  Result<std::string> read_text(std::string_view path) const;
  Result<void> write(std::string_view path, BytesView content) const;
  Result<void> write(std::string_view path, std::string_view content) const;
  Result<void> make_folder(std::string_view path, Depth depth = Depth::kAll) const;
  Result<std::vector<WorkspaceEntry>> list(std::string_view path = "/workspace",
                                           Depth depth = Depth::kOne) const;
  Result<WorkspaceEntry> stat(std::string_view path) const;
  bool exists(std::string_view path) const;
  Result<void> remove(std::string_view path, Depth depth = Depth::kOne) const;
  Result<void> rename(std::string_view from, std::string_view to) const;

  /// Copies a file or folder of the host to `path`; a folder's content is laid over what is there.
  /// All of it is copied or nothing. Links on the host are copied as links. Returns what of a folder
  /// was left out, with the reason.
  Result<std::vector<std::string>> copy_in(const std::filesystem::path& host,
                                           std::string_view path) const;
  /// Copies a file or folder to `host`, which appears there whole or not at all, and is never written
  /// to through a link. Returns the links, which are left out.
  Result<std::vector<std::string>> copy_out(std::string_view path,
                                            const std::filesystem::path& host,
                                            IfThere if_there = IfThere::kFail) const;
  /// Copies a file or folder to another sandbox, or within this one, as `copy_in` does.
  Result<void> copy_to(std::string_view path, const Files& other,
                       std::string_view other_path) const;

 private:
  friend class Sandbox;
  Files(std::shared_ptr<host::Core> core, std::string sandbox)
      : core_(std::move(core)), sandbox_(std::move(sandbox)) {}
  std::shared_ptr<host::Core> core_;  // shared by all handles
  std::string sandbox_;
};

}  // namespace sw
