// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of a guest's file system that never changes: the root, where trees are mounted, devices,
// archives, read-only files. Made once, shared by all instances.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasi/content.h"
#include "sandbox_workers/wasi/tree.h"

namespace sw::wasi {

/// Immutable, thread-safe.
class Layout {
 public:
  Tree& tree() const { return *tree_; }
  const std::shared_ptr<Tree>& shared_tree() const { return tree_; }
  /// The directory that a mount or alias covers; null for a mount at the root itself.
  Node* mount_point(std::int32_t mount) const {
    return mount < kFirstAlias ? mount_points_[static_cast<std::size_t>(mount)]
                               : alias_of(mount).mount_point;
  }
  /// Without aliases, which have no trees of their own.
  std::size_t mount_count() const { return mount_points_.size(); }
  /// The mount whose tree is found there: itself, unless it is an alias.
  std::int32_t tree_number(std::int32_t mount) const {
    return mount < kFirstAlias ? mount : alias_of(mount).mount;
  }

 private:
  friend class LayoutBuilder;

  // Aliases are numbered from here on, so that mounts can be added after them.
  static constexpr std::int32_t kFirstAlias = 1 << 16;

  struct Alias {
    Node* mount_point;
    std::int32_t mount;
  };
  const Alias& alias_of(std::int32_t mount) const {
    return aliases_[static_cast<std::size_t>(mount - kFirstAlias)];
  }

  std::shared_ptr<Tree> tree_;
  std::vector<Node*> mount_points_;
  std::vector<Alias> aliases_;
};

/// Paths are absolute; missing parent directories are made. Errors: kInvalidArgument for a path
/// that is already something else or lies below a mount.
class LayoutBuilder {
 public:
  LayoutBuilder();

  Result<void> add_directory(std::string_view path);
  /// Mounts are numbered from 0 in the order they are added. "/" covers everything else.
  Result<std::size_t> add_mount(std::string_view path);
  /// Another path for the tree of a mount, like a bind mount: device and inodes are the same, and
  /// ".." leads to where the path says.
  Result<void> add_alias(std::string_view path, std::size_t mount);
  /// null, zero, random, urandom, stdin, stdout, stderr.
  Result<void> add_devices(std::string_view path);
  Result<void> add_file(std::string_view path, SharedBytes bytes);
  Result<void> add_lazy_file(std::string_view path, std::shared_ptr<LazyBytes> bytes);
  /// A directory filled on first use. Below a regular file it makes that file a folder too, which
  /// is not seen in listings: the file stays a file.
  Result<void> add_lazy_directory(std::string_view path, Directory::Loader loader);
  /// A read-only copy of a host folder, read now. Links are kept as links; what is neither a file,
  /// folder nor link is left out.
  Result<void> add_host_folder(std::string_view path, const std::filesystem::path& host);

  std::shared_ptr<const Layout> build();

  /// For loaders: a read-only node with an inode number of its own that is the same in every run.
  static std::shared_ptr<Node> make_node(FileType type, std::uint64_t inode);

 private:
  Result<Node*> directory_at(std::string_view path);
  /// A directory that nothing covers yet.
  Result<Node*> bare_directory_at(std::string_view path);
  Result<Node*> place(std::string_view path, FileType type);

  std::shared_ptr<Layout> layout_;
};

/// Mount numbers of the standard layout.
inline constexpr std::size_t kWorkspaceMount = 0;
inline constexpr std::size_t kTmpMount = 1;

/// Where it mounts the workspace, and where the workspace is found as well.
inline constexpr std::string_view kWorkspacePath = "/workspace";
inline constexpr std::string_view kHomePath = "/home/user";

/// A builder that already holds /workspace, /tmp, /dev and /home/user.
LayoutBuilder standard_layout();

}  // namespace sw::wasi
