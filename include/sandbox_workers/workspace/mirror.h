// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasi/tree.h"
#include "sandbox_workers/workspace/manifest.h"
#include "sandbox_workers/workspace/workspace.h"

namespace sw {

/// The copy of a sandbox's files that an instance works on. It lives as long as the instance, whose
/// open files are in it.
/// Threads: one at a time.
class Mirror {
 public:
  explicit Mirror(std::uint64_t now_ns);

  /// Before a run: makes the copy equal to `files`. Given a state, in the time of what differs from the
  /// one that was followed last, and of what was done to the copy since.
  /// Errors: kInvalidArgument naming an invalid path; kBadReply when `get_files` does not give what
  /// it is asked for; those of `get_files`.
  Result<void> follow(const RunFiles& files, std::uint64_t now_ns);
  /// After it: what has changed since.
  WorkspaceDiff changes() const { return files_.changes_since(*before_); }

  Workspace& files() { return files_; }
  const std::shared_ptr<wasi::Tree>& tree() const { return files_.tree(); }

 private:
  Result<void> follow_state(const wasi::TreeState& wanted, std::uint64_t now_ns);
  Result<void> follow_manifest(const WorkspaceManifest& manifest, const GetFiles& get_files,
                               std::uint64_t now_ns);

  Workspace files_;
  // Shared, as their type is not known here. At the end of `follow` these two were equal but for times:
  std::shared_ptr<const wasi::TreeState> followed_;  // the sandbox's files
  std::shared_ptr<const wasi::TreeState> before_;    // the copy
};

}  // namespace sw
