// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What one instance sees: a layout (shared, immutable) with this run's trees mounted in it. Turns
// paths into nodes. Two groups of functions: those relative to a directory, which the WASI
// functions use, and those with absolute paths for the host side (JavaScript's fs, drivers, the
// command line).
//
// Nothing outside the trees can be named: ".." at the root is the root, an absolute link starts at
// the root.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/base/cancellation.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasi/clocks.h"
#include "sandbox_workers/wasi/layout.h"
#include "sandbox_workers/wasi/tree.h"

namespace sw::wasi {

/// A node and the tree it is in: -1 is the layout, otherwise the number of the mount or alias that
/// the path led through. Valid while the node is.
struct Place {
  std::int32_t mount = -1;
  Node* node = nullptr;
  explicit operator bool() const { return node != nullptr; }
};

/// A node that is kept although its name may go.
struct NodeRef {
  std::shared_ptr<Tree> tree;  // first: it must outlive the node
  std::shared_ptr<Node> node;
  std::int32_t mount = -1;
};

struct Stat {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  FileType type = FileType::kUnknown;
  std::uint64_t links = 0;
  std::uint64_t size = 0;
  Timestamps times;
};

struct DirectoryEntry {
  std::string name;
  FileType type = FileType::kUnknown;
  std::uint64_t inode = 0;
};

enum class Follow : std::uint8_t { kNo, kYes };
enum class WriteMode : std::uint8_t { kReplace, kAppend, kCreateNew };

struct OpenFlags {
  bool create = false;
  bool directory = false;
  bool exclusive = false;
  bool truncate = false;
  bool write = false;
  Follow follow = Follow::kNo;
};

/// Times to set; what is not given stays.
struct NewTimes {
  std::optional<std::uint64_t> accessed;
  std::optional<std::uint64_t> modified;
};

/// Threads: one at a time.
class FileSystem {
 public:
  /// `clocks` must outlive this. `tmp_limits` are for the trees that are made when first needed.
  FileSystem(std::shared_ptr<const Layout> layout, const Clocks& clocks,
             const TreeLimits& tmp_limits = {});

  /// Puts a tree in a mount's place; null: a new empty one when it is first needed.
  void mount(std::size_t number, std::shared_ptr<Tree> tree);
  const std::shared_ptr<Tree>& mounted(std::size_t number);
  const Layout& layout() const { return *layout_; }
  const Clocks& clocks() const { return clocks_; }
  std::uint64_t now_ns() const { return clocks_.realtime_ns(); }

  Place root();
  std::uint64_t device_of(std::int32_t mount) const {
    return static_cast<std::uint64_t>(layout_->tree_number(mount)) + 2;
  }
  const std::shared_ptr<Tree>& tree_of(std::int32_t mount);
  NodeRef keep(const Place& place);
  bool is_same_tree(const Place& a, const Place& b) const {
    return layout_->tree_number(a.mount) == layout_->tree_number(b.mount);
  }
  Stat stat_of(const Node& node, std::int32_t mount) const;
  /// Of a directory; itself at the root. Null node when the directory was removed.
  Place parent_of(const Place& place);

  /// A path without links that leads to the node now; kNoent when none does.
  ErrnoOr<std::string> canonical_path(const NodeRef& ref);
  /// Where such a path leads; also into a disabled tree.
  ErrnoOr<NodeRef> find_canonical(std::string_view path);

  // Relative to `at`. A path that begins with "/", or leaves `at` by its own "..", is kNotcapable.

  ErrnoOr<NodeRef> open_at(const Place& at, std::string_view path, const OpenFlags& flags);
  ErrnoOr<Stat> stat_at(const Place& at, std::string_view path, Follow follow);
  ErrnoOr<Place> find_at(const Place& at, std::string_view path, Follow follow);
  Errno set_times_at(const Place& at, std::string_view path, Follow follow, const NewTimes& times);
  Errno make_directory_at(const Place& at, std::string_view path);
  Errno remove_directory_at(const Place& at, std::string_view path);
  Errno unlink_at(const Place& at, std::string_view path);
  Errno rename_at(const Place& from_at, std::string_view from, const Place& to_at,
                  std::string_view to);
  Errno link_at(const Place& from_at, std::string_view from, Follow follow, const Place& to_at,
                std::string_view to);
  Errno symlink_at(std::string_view target, const Place& at, std::string_view path);
  ErrnoOr<std::string> readlink_at(const Place& at, std::string_view path);
  Errno set_times(const Place& place, const NewTimes& times);

  // The host's side. Absolute paths (see normalize for others); links are followed unless said
  // otherwise.

  ErrnoOr<SharedBytes> read_file(std::string_view path);
  /// All or nothing, except that it may leave a new empty file.
  Errno write_file(std::string_view path, BytesView bytes, WriteMode mode = WriteMode::kReplace);
  /// For bytes of a guest's: kGuestStopped once the run was cancelled (null: never).
  Result<Errno> write_file(std::string_view path, BytesView bytes, WriteMode mode,
                           const Cancellation* cancellation);
  ErrnoOr<std::vector<DirectoryEntry>> read_directory(std::string_view path);
  ErrnoOr<Stat> stat(std::string_view path, Follow follow = Follow::kYes);
  bool exists(std::string_view path) { return stat(path).ok(); }
  Errno make_directory(std::string_view path);
  /// The missing parents too; an existing directory is fine.
  Errno make_directories(std::string_view path);
  /// A file, link or empty directory.
  Errno remove(std::string_view path);
  /// With all below it.
  Errno remove_all(std::string_view path);
  Errno rename(std::string_view from, std::string_view to);
  Errno copy_file(std::string_view from, std::string_view to, WriteMode mode = WriteMode::kReplace);
  Errno truncate(std::string_view path, std::uint64_t size);
  Errno symlink(std::string_view target, std::string_view path);
  Errno link(std::string_view from, std::string_view to);
  ErrnoOr<std::string> read_link(std::string_view path);
  Errno set_file_times(std::string_view path, const NewTimes& times);
  /// The path without links, "." and "..".
  ErrnoOr<std::string> real_path(std::string_view path);

  /// `path`, if relative taken from `directory`, without ".", ".." and doubled or trailing slashes.
  /// Text only.
  static std::string normalize(std::string_view directory, std::string_view path);

 private:
  friend class PathWalk;

  /// What to do with a link as the last component: POSIX follows it when a slash comes after it,
  /// except where the name itself is meant (unlink, rename, mkdir, …). To create is to follow, but
  /// not past a slash.
  enum class Final : std::uint8_t { kFollow, kNoFollow, kName, kCreate };
  enum class Last : std::uint8_t { kName, kDot, kDotDot };

  struct Found {
    Place parent;      ///< holds the name; null when last is not kName
    std::string name;  ///< the last component
    Place node;        ///< null when there is no such name
    Last last = Last::kDot;
    bool trailing_slash = false;
  };

  static Final final_of(Follow follow) {
    return follow == Follow::kYes ? Final::kFollow : Final::kNoFollow;
  }
  ErrnoOr<Found> resolve(const Place& at, std::string_view path, Final final);
  ErrnoOr<Place> enter(const Place& place);
  ErrnoOr<NodeRef> open_existing(const Found& found, const OpenFlags& flags);
  /// For the host's side: a path relative to the root.
  ErrnoOr<std::string_view> below_root(std::string_view path);
  Result<Errno> append(const NodeRef& file, BytesView bytes, const Cancellation* cancellation);
  ErrnoOr<std::string> path_of_directory(Place place);

  std::shared_ptr<const Layout> layout_;
  const Clocks& clocks_;
  TreeLimits tmp_limits_;
  std::vector<std::shared_ptr<Tree>> mounts_;
};

}  // namespace sw::wasi
