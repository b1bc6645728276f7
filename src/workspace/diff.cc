// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What runs do to a workspace.

#include "workspace/diff.h"

#include <algorithm>

#include "sandbox_workers/workspace/workspace.h"
#include "workspace/names.h"
#include "workspace/placer.h"

namespace sw {

namespace {

using wasi::FileType;
using Entry = wasi::TreeState::Entry;

WorkspaceFile file_of(std::string_view below, const Entry& entry) {
  return {.path = absolute_path(below),
          .data = entry.bytes,
          .updated_at_ms = static_cast<std::int64_t>(entry.times.modified / kNsPerMs)};
}

/// Copies know the times of files to the millisecond, and those of other entries not at all.
bool is_same(const Entry& a, const Entry& b) {
  const bool is_file = a.type == FileType::kRegularFile;
  if (is_file && a.times.modified / kNsPerMs != b.times.modified / kNsPerMs) return false;
  return a.has_content_of(b);
}

}  // namespace

void add_change(WorkspaceDiff& diff, std::string_view below, const Entry* before,
                const Entry* after) {
  if (!after) {
    if (before) diff.removed.push_back(absolute_path(below));
    return;
  }
  if (before && is_same(*before, *after)) return;
  switch (after->type) {
    case FileType::kDirectory: diff.dirs.push_back(absolute_path(below)); break;
    case FileType::kRegularFile: diff.files.push_back(file_of(below, *after)); break;
    case FileType::kSymbolicLink: diff.links.emplace(absolute_path(below), after->target); break;
    default: break;
  }
}

WorkspaceDiff workspace_diff(const wasi::TreeState& before, const wasi::TreeState& after) {
  WorkspaceDiff diff;
  wasi::TreeState::Entries::differences(
      before.entries(), after.entries(),
      [&](const std::string& below, const Entry* old, const Entry* now) {
        add_change(diff, below, old, now);
      });
  return diff;
}

std::vector<WorkspaceFile> workspace_files(const wasi::TreeState& state,
                                           const std::vector<std::string>& paths) {
  std::vector<WorkspaceFile> files;
  for (const std::string& path : paths) {
    if (path.size() <= kWorkspaceRoot.size()) continue;
    const std::string_view below = std::string_view(path).substr(kWorkspaceRoot.size() + 1);
    const Entry* const found = state.entries().find(below);
    if (found != nullptr && found->type == FileType::kRegularFile)
      files.push_back(file_of(below, *found));
  }
  return files;
}

Result<void> Workspace::apply_diff(const WorkspaceDiff& diff, std::uint64_t now_ns) {
  Folders folders;
  for (const std::string& dir : diff.dirs) folders.add(dir);
  for (const auto& [path, target] : diff.links) folders.add_parent_of(path);
  for (const WorkspaceFile& file : diff.files) folders.add_parent_of(file.path);
  Placer placer(*tree_, now_ns);
  SW_CHECK_OK(place_all(placer, folders, diff.files, diff.links));
  // What is in a folder comes after it, so it goes before it.
  std::vector<std::string_view> removed(diff.removed.begin(), diff.removed.end());
  std::ranges::sort(removed, std::ranges::greater());
  for (const std::string_view path : removed) SW_CHECK_OK(placer.remove_unless_filled(path));
  return {};
}

std::shared_ptr<const RunFiles> Workspace::for_run() const {
  // Both are shared with the run.
  return std::make_shared<const RunFiles>(
      RunFiles{.disabled = disabled(),
               .limits = tree_->limits(),
               .state = std::make_shared<const wasi::TreeState>(tree_->state())});
}

wasi::TreeState Workspace::remember() const { return tree_->state(); }

WorkspaceDiff Workspace::changes_since(const wasi::TreeState& before) const {
  return workspace_diff(before, tree_->state());
}

}  // namespace sw
