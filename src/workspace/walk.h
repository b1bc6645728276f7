// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where a host's path leads in a workspace's tree, links included.

#include <memory>
#include <string>
#include <string_view>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasi/tree.h"

namespace sw {

struct ResolvedPath {
  wasi::Node* parent = nullptr;      ///< holds the name; null for the root
  std::string name;                  ///< empty when links led to a directory by dots
  std::shared_ptr<wasi::Node> node;  ///< null when there is no such name
};

enum class LastLink : std::uint8_t { kFollow, kKeep };

/// `path` is normalized.
/// Errors: kFileNotFound when a directory on the way is missing, kNotDirectory, kFileSystem for too
/// many links (ELOOP), kPermission for a link that leads out.
Result<ResolvedPath> resolve_path(wasi::Tree& tree, std::string_view path, LastLink last);

}  // namespace sw
