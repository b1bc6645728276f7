// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/workspace/manifest.h"

#include <algorithm>

#include "sandbox_workers/wasi/tree.h"
#include "sandbox_workers/workspace/workspace.h"
#include "workspace/names.h"

namespace sw {

namespace {

/// `path` with the first link on its way replaced by where that leads; nullopt: there is none, or
/// it leads out of the workspace.
std::optional<std::string> follow_link(const WorkspaceDiff& after, std::string_view path) {
  std::size_t end = kWorkspaceRoot.size();
  while (end < path.size()) {
    end = std::min(path.find('/', end + 1), path.size());
    const auto link = after.links.find(std::string(path.substr(0, end)));
    if (link == after.links.end()) continue;
    const std::string_view parent = path.substr(0, path.rfind('/', end - 1));
    const auto target = Workspace::normalize(link->second + std::string(path.substr(end)), parent);
    return target.ok() ? std::optional(*target) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

WorkspaceDiff no_difference(const WorkspaceManifest& manifest) {
  return {.dirs = manifest.dirs, .files = {}, .deleted = {}, .links = manifest.links};
}

bool is_folder(const WorkspaceDiff& after, std::string_view path) {
  std::string at(path);
  for (std::size_t links = 0; links <= wasi::kSymlinksFollowedMax; ++links) {
    if (at == kWorkspaceRoot || std::ranges::binary_search(after.dirs, at)) return true;
    auto next = follow_link(after, at);
    if (!next) return false;
    at = *std::move(next);
  }
  return false;
}

}  // namespace sw
