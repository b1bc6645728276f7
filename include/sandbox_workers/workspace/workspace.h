// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files of a sandbox, as hosts see them: what guests see at /workspace.

#include <cstdint>
#include <memory>

#include "sandbox_workers/wasi/tree.h"

namespace sw {

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
