// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Paths of a workspace and the names in its tree that they stand for, without following links.

#include <string>
#include <string_view>

#include "sandbox_workers/wasi/tree.h"

namespace sw {

inline constexpr std::string_view kWorkspaceRoot = "/workspace";

/// Of a path below the tree's root.
std::string absolute_path(std::string_view below);

struct TreeName {
  /// Null when what should lead there is not there, or no directory
  wasi::Node* directory = nullptr;
  std::string_view last;  ///< within the path that was looked for
};

/// Where a path's last name belongs. kInval for a path that is not below /workspace or has empty
/// parts or dots.
wasi::ErrnoOr<TreeName> find_name(wasi::Tree& tree, std::string_view path);

}  // namespace sw
