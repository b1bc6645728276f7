// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Keeping two copies of a workspace alike. Everything here works on names, never through links: a
// link is an entry like others.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sandbox_workers/workspace/workspace.h"
#include "wasi/tree_state.h"
#include "workspace/names.h"

namespace sw {

namespace {

using wasi::Errno;
using wasi::FileType;
using wasi::Node;

constexpr std::uint64_t kNsPerMs = 1'000'000;

/// Lets the host put files in place whatever the flag and limits are, and puts those back.
class Unlimited {
 public:
  explicit Unlimited(wasi::Tree& tree)
      : tree_(tree),
        limits_(tree.limits()),
        disabled_(tree.disabled()),
        read_only_(tree.read_only()) {
    tree.set_limits({.file_bytes_max = UINT64_MAX,
                     .tree_bytes_max = UINT64_MAX,
                     .entries_max = UINT64_MAX,
                     .depth_max = UINT32_MAX});
    tree.set_disabled(false);
    tree.set_read_only(false);
  }
  Unlimited(const Unlimited&) = delete;
  Unlimited& operator=(const Unlimited&) = delete;
  ~Unlimited() {
    tree_.set_limits(limits_);
    tree_.set_disabled(disabled_);
    tree_.set_read_only(read_only_);
  }

 private:
  wasi::Tree& tree_;
  const wasi::TreeLimits limits_;
  const bool disabled_;
  const bool read_only_;
};

Error cannot(std::string_view path, Errno error) {
  return Error{ErrorCode::kInvalidArgument, fmt::format("{}: {}", path, wasi::errno_text(error)),
               0};
}

/// Puts single entries in place.
class Placer {
 public:
  Placer(wasi::Tree& tree, std::uint64_t now_ns) : unlimited_(tree), tree_(tree), now_ns_(now_ns) {}

  Result<void> directory(std::string_view path) {
    SW_TRY(const Name name, locate(path));
    if (const auto existing = node(name); existing && existing->type == FileType::kDirectory)
      return {};
    SW_CHECK_OK(remove(path, name));
    const auto made = tree_.create(*name.directory, name.last, FileType::kDirectory, now_ns_);
    return made.ok() ? Result<void>() : cannot(path, made.error());
  }

  Result<void> file(const WorkspaceFile& file) {
    SW_TRY(const Name name, locate(file.path));
    auto place = node(name);
    // A file with several names is one file here only: the other copy has a file for each.
    if (place && (place->type != FileType::kRegularFile || place->links > 1)) {
      SW_CHECK_OK(remove(file.path, name));
      place = nullptr;
    }
    if (!place) {
      auto made = tree_.create(*name.directory, name.last, FileType::kRegularFile, now_ns_);
      if (!made.ok()) return cannot(file.path, made.error());
      place = *std::move(made);
    }
    if (const Errno set = tree_.set_content(*place, file.data, now_ns_); set != Errno::kSuccess) {
      return cannot(file.path, set);
    }
    const std::int64_t ms = std::max<std::int64_t>(file.updated_at_ms, 0);
    place->times = wasi::Timestamps::all(static_cast<std::uint64_t>(ms) * kNsPerMs);
    return {};
  }

  Result<void> link(std::string_view path, std::string_view target) {
    SW_TRY(const Name name, locate(path));
    const auto existing = node(name);
    if (existing && existing->type == FileType::kSymbolicLink && existing->target == target)
      return {};
    SW_CHECK_OK(remove(path, name));
    const auto made = tree_.create_symlink(*name.directory, name.last, target, now_ns_);
    return made.ok() ? Result<void>() : cannot(path, made.error());
  }

  /// Whatever is there, if anything is.
  Result<void> remove(std::string_view path) {
    const auto name = find_name(tree_, path);
    return name.ok() && name->directory ? remove(path, *name) : Result<void>();
  }

  /// What is there, but no folder with something in it.
  Result<void> remove_unless_filled(std::string_view path) {
    const auto name = find_name(tree_, path);
    if (!name.ok() || !name->directory) return {};
    const auto existing = node(*name);
    if (!existing || existing->type != FileType::kDirectory) return remove(path, *name);
    const Errno removed = tree_.remove_directory(*name->directory, name->last, now_ns_);
    const bool done = removed == Errno::kSuccess || removed == Errno::kNotempty;
    return done ? Result<void>() : cannot(path, removed);
  }

 private:
  using Name = TreeName;

  Result<Name> locate(std::string_view path) {
    const auto name = find_name(tree_, path);
    if (!name.ok()) return cannot(path, name.error());
    if (!name->directory) return cannot(path, Errno::kNoent);
    return *name;
  }

  static std::shared_ptr<Node> node(const Name& name) {
    const auto entry = name.directory->directory->find(name.last);
    return entry.ok() && *entry ? (*entry)->node : nullptr;
  }

  Result<void> remove(std::string_view path, const Name& name) {
    if (!node(name)) return {};
    const Errno removed = tree_.remove_all(*name.directory, name.last, now_ns_);
    return removed == Errno::kSuccess ? Result<void>() : cannot(path, removed);
  }

  Unlimited unlimited_;
  wasi::Tree& tree_;
  const std::uint64_t now_ns_;
};

/// The folders named, and those that what is named lies in. Parents come before what is in them.
class Folders {
 public:
  void add(std::string_view path) {
    for (std::string_view dir = path; dir.size() > kWorkspaceRoot.size();) {
      if (!all_.emplace(dir).second) break;
      dir = dir.substr(0, dir.rfind('/'));
    }
  }
  void add_parent_of(std::string_view path) {
    if (const auto slash = path.rfind('/'); slash != std::string_view::npos)
      add(path.substr(0, slash));
  }
  bool contains(std::string_view path) const { return all_.contains(path); }
  const std::set<std::string, std::less<>>& all() const { return all_; }

 private:
  std::set<std::string, std::less<>> all_;
};

using Links = std::map<std::string, std::string>;

/// Folders, then files, then links.
Result<void> place_all(Placer& placer, const Folders& folders, std::span<const WorkspaceFile> files,
                       const Links& links) {
  for (const std::string& dir : folders.all()) SW_CHECK_OK(placer.directory(dir));
  for (const WorkspaceFile& file : files) SW_CHECK_OK(placer.file(file));
  for (const auto& [path, target] : links) SW_CHECK_OK(placer.link(path, target));
  return {};
}

/// Deepest first.
Result<void> remove_all(Placer& placer, const std::vector<std::string>& paths) {
  for (auto path = paths.rbegin(); path != paths.rend(); ++path) SW_CHECK_OK(placer.remove(*path));
  return {};
}

/// Removes what there was before a run and is not after it.
Result<void> remove_gone(Placer& placer, const WorkspaceDiff& diff, const wasi::TreeState& before) {
  const std::set<std::string_view> dirs(diff.dirs.begin(), diff.dirs.end());
  const std::set<std::string_view> deleted(diff.deleted.begin(), diff.deleted.end());
  std::set<std::string_view> put;
  for (const WorkspaceFile& file : diff.files) put.insert(file.path);
  // What is in a folder comes after it, so it goes before it.
  for (auto old = before.entries().rbegin(); old != before.entries().rend(); ++old) {
    const std::string path = absolute_path(old->first);
    if (old->second.type == FileType::kRegularFile && !deleted.contains(path)) continue;
    if (dirs.contains(path) || diff.links.contains(path) || put.contains(path)) continue;
    SW_CHECK_OK(placer.remove_unless_filled(path));
  }
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

WorkspaceManifest Workspace::manifest(Hashes hashes) {
  forget_gone_hashes();
  WorkspaceManifest manifest;
  (void)tree_->walk([&](const std::string& below, Node& node) {
    std::string path = absolute_path(below);
    switch (node.type) {
      case FileType::kDirectory: manifest.dirs.push_back(std::move(path)); break;
      case FileType::kRegularFile:
        manifest.files.emplace(std::move(path), hashes == Hashes::kWith ? hash_of(node) : "");
        break;
      case FileType::kSymbolicLink: manifest.links.emplace(std::move(path), node.target); break;
      default: break;
    }
    return true;
  });
  std::ranges::sort(manifest.dirs);
  manifest.disabled = disabled();
  return manifest;
}

std::shared_ptr<const RunFiles> Workspace::for_run(Hashes hashes) {
  WorkspaceManifest files = manifest(hashes);
  files.limits = tree_->limits();
  // Both are shared with the run.
  const auto state = std::make_shared<const wasi::TreeState>(remember());
  return std::make_shared<const RunFiles>(
      RunFiles{.manifest = std::move(files),
               .get_files = [state](const auto& paths) { return workspace_files(*state, paths); }});
}

Result<std::vector<std::string>> Workspace::apply_sync(const WorkspaceManifest& manifest,
                                                       std::span<const WorkspaceFile> files,
                                                       std::uint64_t now_ns) {
  set_disabled(manifest.disabled);
  if (manifest.limits) tree_->set_limits(*manifest.limits);
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

Result<void> Workspace::apply_diff(const WorkspaceDiff& diff, const wasi::TreeState& before,
                                   std::uint64_t now_ns) {
  Folders folders;
  const auto existed = [&](std::string_view path, FileType type) {
    const auto found = before.entries().find(
        std::string(path.substr(std::min(path.size(), kWorkspaceRoot.size() + 1))));
    return found != before.entries().end() && found->second.type == type ? &found->second : nullptr;
  };
  for (const std::string& dir : diff.dirs) {
    if (!existed(dir, FileType::kDirectory)) folders.add(dir);
  }
  Links links;
  for (const auto& [path, target] : diff.links) {
    const auto* const old = existed(path, FileType::kSymbolicLink);
    if (!old || old->target != target) links.emplace(path, target);
  }
  for (const auto& [path, target] : links) folders.add_parent_of(path);
  for (const WorkspaceFile& file : diff.files) folders.add_parent_of(file.path);
  Placer placer(*tree_, now_ns);
  SW_CHECK_OK(place_all(placer, folders, diff.files, links));
  return remove_gone(placer, diff, before);
}

namespace {

bool same_file(const wasi::TreeState::Entry& a, const wasi::TreeState::Entry& b) {
  if (a.type != b.type || a.bytes.bytes.size() != b.bytes.bytes.size()) return false;
  if (a.times.modified / kNsPerMs != b.times.modified / kNsPerMs) return false;
  return a.bytes.bytes.data() == b.bytes.bytes.data() ||
         std::ranges::equal(a.bytes.bytes, b.bytes.bytes);
}

WorkspaceFile file_of(const std::string& below, const wasi::TreeState::Entry& entry) {
  return {.path = absolute_path(below),
          .data = entry.bytes,
          .updated_at_ms = static_cast<std::int64_t>(entry.times.modified / kNsPerMs)};
}

}  // namespace

std::vector<WorkspaceFile> workspace_files(const wasi::TreeState& state,
                                           const std::vector<std::string>& paths) {
  std::vector<WorkspaceFile> files;
  for (const std::string& path : paths) {
    if (path.size() <= kWorkspaceRoot.size()) continue;
    const std::string below = path.substr(kWorkspaceRoot.size() + 1);
    const auto found = state.entries().find(below);
    if (found == state.entries().end() || found->second.type != FileType::kRegularFile) continue;
    files.push_back(file_of(below, found->second));
  }
  return files;
}

WorkspaceDiff workspace_diff(const wasi::TreeState& before, const wasi::TreeState& after) {
  WorkspaceDiff diff;
  std::vector<WorkspaceFile> updated;
  const auto was_file = [](const auto& found, const wasi::TreeState& state) {
    return found != state.entries().end() && found->second.type == FileType::kRegularFile;
  };
  for (const auto& [below, entry] : after.entries()) {
    if (entry.type == FileType::kDirectory) diff.dirs.push_back(absolute_path(below));
    if (entry.type == FileType::kSymbolicLink)
      diff.links.emplace(absolute_path(below), entry.target);
    if (entry.type != FileType::kRegularFile) continue;
    const auto old = before.entries().find(below);
    if (!was_file(old, before)) diff.files.push_back(file_of(below, entry));
    else if (!same_file(old->second, entry)) updated.push_back(file_of(below, entry));
  }
  std::ranges::sort(diff.dirs);
  std::ranges::move(updated, std::back_inserter(diff.files));
  for (const auto& [below, entry] : before.entries()) {
    if (entry.type != FileType::kRegularFile) continue;
    if (!was_file(after.entries().find(below), after)) diff.deleted.push_back(absolute_path(below));
  }
  return diff;
}

wasi::TreeState Workspace::remember() const { return wasi::TreeState::of(*tree_); }

WorkspaceDiff Workspace::changes_since(const wasi::TreeState& before) const {
  return workspace_diff(before, remember());
}

}  // namespace sw
