// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/workspace/manifest.h"

#include <algorithm>
#include <set>

#include "sandbox_workers/wasi/tree.h"
#include "sandbox_workers/workspace/workspace.h"
#include "wasi/tree_state.h"
#include "workspace/names.h"

namespace sw {

namespace {

/// What there is after a run, as far as it matters to who follows a path.
class After {
 public:
  After(const RunFiles& files, const WorkspaceDiff& diff)
      : files_(files), diff_(diff), made_(diff.dirs.begin(), diff.dirs.end()), changed_(made_) {
    changed_.insert(diff.removed.begin(), diff.removed.end());
    for (const WorkspaceFile& file : diff.files) changed_.insert(file.path);
    for (const auto& [path, target] : diff.links) changed_.insert(path);
  }

  bool is_folder(const std::string& path) const {
    if (path == kWorkspaceRoot || made_.contains(path)) return true;
    if (changed_.contains(path)) return false;
    if (!files_.state) return std::ranges::binary_search(files_.manifest.dirs, path);
    const auto* const entry = entry_at(path);
    return entry != nullptr && entry->type == wasi::FileType::kDirectory;
  }

  /// The target of the link at `path`; null when it is no link.
  const std::string* link(const std::string& path) const {
    const bool is_changed = changed_.contains(path);
    if (is_changed || !files_.state) {
      const auto& links = is_changed ? diff_.links : files_.manifest.links;
      const auto link = links.find(path);
      return link == links.end() ? nullptr : &link->second;
    }
    const auto* const entry = entry_at(path);
    const bool is_link = entry != nullptr && entry->type == wasi::FileType::kSymbolicLink;
    return is_link ? &entry->target : nullptr;
  }

 private:
  const wasi::TreeState::Entry* entry_at(std::string_view path) const {
    if (!path.starts_with(kWorkspaceRoot) || path.size() <= kWorkspaceRoot.size()) return nullptr;
    path.remove_prefix(kWorkspaceRoot.size());
    return path.front() == '/' ? files_.state->entries().find(path.substr(1)) : nullptr;
  }

  const RunFiles& files_;
  const WorkspaceDiff& diff_;
  const std::set<std::string_view> made_;  // folders
  std::set<std::string_view> changed_;     // anything
};

/// `path` with the first link on its way replaced by where that leads; nullopt: there is none, or
/// it leads out of the workspace.
std::optional<std::string> follow_link(const After& after, std::string_view path) {
  std::size_t end = kWorkspaceRoot.size();
  while (end < path.size()) {
    end = std::min(path.find('/', end + 1), path.size());
    const std::string* const link = after.link(std::string(path.substr(0, end)));
    if (link == nullptr) continue;
    const std::string_view parent = path.substr(0, path.rfind('/', end - 1));
    const auto target = Workspace::normalize(*link + std::string(path.substr(end)), parent);
    return target.ok() ? std::optional(*target) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

bool is_folder(const RunFiles& files, const WorkspaceDiff& diff, std::string_view path) {
  if (path == kWorkspaceRoot) return true;
  const After after(files, diff);
  std::string at(path);
  for (std::size_t links = 0; links <= wasi::kSymlinksFollowedMax; ++links) {
    if (after.is_folder(at)) return true;
    auto next = follow_link(after, at);
    if (!next) return false;
    at = *std::move(next);
  }
  return false;
}

}  // namespace sw
