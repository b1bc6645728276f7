// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Making a workspace equal to a manifest from another process.

#include <algorithm>
#include <set>

#include "sandbox_workers/workspace/workspace.h"
#include "wasi/tree_state.h"
#include "workspace/names.h"
#include "workspace/placer.h"

namespace sw {

namespace {

using wasi::FileType;
using wasi::Node;

/// Deepest first.
Result<void> remove_all(Placer& placer, const std::vector<std::string>& paths) {
  for (auto path = paths.rbegin(); path != paths.rend(); ++path) SW_CHECK_OK(placer.remove(*path));
  return {};
}

}  // namespace

const std::string& Workspace::hash_of(const Node& file) {
  KnownHash& known = hashes_[file.inode];
  if (known.hash.empty() || known.version != file.content.version()) {
    const auto bytes = file.content.view();
    known = {file.content.version(), content_hash(bytes.ok() ? *bytes : BytesView())};
  }
  return known.hash;
}

void Workspace::forget_gone_hashes() {
  // Files come and go; what is kept of them stays within what there is.
  if (hashes_.size() <= 2 * (tree_->usage().entries + 64)) return;
  std::unordered_map<std::uint64_t, KnownHash> kept;
  (void)tree_->walk([&](const std::string&, Node& node) {
    if (const auto known = hashes_.find(node.inode); known != hashes_.end())
      kept.insert(std::move(*known));
    return true;
  });
  hashes_ = std::move(kept);
}

Result<std::vector<std::string>> Workspace::apply_sync(const WorkspaceManifest& manifest,
                                                       std::span<const WorkspaceFile> files,
                                                       std::uint64_t now_ns) {
  forget_gone_hashes();
  Folders folders;
  for (const std::string& dir : manifest.dirs) folders.add(dir);
  for (const auto& [path, hash] : manifest.files) folders.add_parent_of(path);
  for (const auto& [path, target] : manifest.links) folders.add_parent_of(path);
  Placer placer(*tree_, now_ns);
  SW_CHECK_OK(place_all(placer, folders, files, manifest.links));

  std::vector<std::string> surplus;
  std::set<std::string_view> good;
  for (const WorkspaceFile& file : files) {
    const auto listed = manifest.files.find(file.path);
    if (listed != manifest.files.end() && listed->second.empty()) good.insert(listed->first);
  }
  (void)tree_->walk([&](const std::string& below, Node& node) {
    std::string path = absolute_path(below);
    bool listed = false;
    if (node.type == FileType::kDirectory) {
      listed = folders.contains(path);
    } else if (node.type == FileType::kSymbolicLink) {
      listed = manifest.links.contains(path);
    } else if (const auto file = manifest.files.find(path); file != manifest.files.end()) {
      listed = true;
      if (!file->second.empty() && hash_of(node) == file->second) good.insert(file->first);
    }
    if (!listed) surplus.push_back(std::move(path));
    return listed;
  });
  SW_CHECK_OK(remove_all(placer, surplus));

  std::vector<std::string> missing;
  for (const auto& [path, hash] : manifest.files) {
    if (!good.contains(path)) missing.push_back(path);
  }
  return missing;
}

WorkspaceManifest manifest_of(const wasi::TreeState& state) {
  WorkspaceManifest manifest;
  for (const auto& [below, entry] : state.entries()) {
    std::string path = absolute_path(below);
    switch (entry.type) {
      case FileType::kDirectory: manifest.dirs.push_back(std::move(path)); break;
      case FileType::kRegularFile:
        manifest.files.emplace(std::move(path), content_hash(entry.bytes.bytes));
        break;
      case FileType::kSymbolicLink: manifest.links.emplace(std::move(path), entry.target); break;
      default: break;
    }
  }
  return manifest;
}

}  // namespace sw
