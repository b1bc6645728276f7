// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasi/file_system.h"

#include <utility>

#include "sandbox_workers/base/utf8.h"
#include "wasi/path_walk.h"

namespace sw::wasi {
namespace {

bool is_directory(const Place& place) { return place.node->type == FileType::kDirectory; }

}  // namespace

FileSystem::FileSystem(std::shared_ptr<const Layout> layout, const Clocks& clocks,
                       const TreeLimits& tmp_limits)
    : layout_(std::move(layout)),
      clocks_(clocks),
      tmp_limits_(tmp_limits),
      mounts_(layout_->mount_count()) {}

void FileSystem::mount(std::size_t number, std::shared_ptr<Tree> tree) {
  mounts_[number] = std::move(tree);
}

const std::shared_ptr<Tree>& FileSystem::mounted(std::size_t number) {
  auto& tree = mounts_[number];
  if (!tree) tree = std::make_shared<Tree>(tmp_limits_, now_ns());
  return tree;
}

const std::shared_ptr<Tree>& FileSystem::tree_of(std::int32_t mount) {
  if (mount < 0) return layout_->shared_tree();
  return mounted(static_cast<std::size_t>(layout_->tree_number(mount)));
}

Place FileSystem::root() {
  Node& node = layout_->tree().root();
  if (node.mount >= 0) return {node.mount, &tree_of(node.mount)->root()};
  return {-1, &node};
}

NodeRef FileSystem::keep(const Place& place) {
  return {tree_of(place.mount), place.node->shared_from_this(), place.mount};
}

Place FileSystem::parent_of(const Place& place) {
  const Node* node = place.node;
  std::int32_t mount = place.mount;
  if (node == &tree_of(mount)->root()) {
    node = mount < 0 ? nullptr : layout_->mount_point(mount);
    if (!node) return place;  // the root of all
    mount = -1;
  }
  return {mount, node->parent};
}

Stat FileSystem::stat_of(const Node& node, std::int32_t mount) const {
  return {device_of(mount), node.inode, node.type, node.links, node.size(), node.times};
}

ErrnoOr<Place> FileSystem::enter(const Place& place) {
  if (place.node->mount < 0) return place;
  const auto& tree = tree_of(place.node->mount);
  if (tree->disabled()) return Errno::kAcces;
  return Place{place.node->mount, &tree->root()};
}

ErrnoOr<FileSystem::Found> FileSystem::resolve(const Place& at, std::string_view path,
                                               Final final) {
  if (path.empty()) return Errno::kNoent;
  if (path.size() > kPathBytesMax) return Errno::kNametoolong;
  if (path.find('\0') != std::string_view::npos) return Errno::kInval;
  if (first_invalid_utf8(path)) return Errno::kIlseq;
  if (path.front() == '/') return Errno::kNotcapable;
  if (tree_of(at.mount)->disabled()) return Errno::kAcces;
  return PathWalk(*this, at, path).run(final);
}

ErrnoOr<NodeRef> FileSystem::open_existing(const Found& found, const OpenFlags& flags) {
  const Place& place = found.node;
  const auto& tree = tree_of(place.mount);
  if (flags.create && flags.exclusive) return Errno::kExist;
  if (place.node->type == FileType::kSymbolicLink)
    return flags.directory ? Errno::kNotdir : Errno::kLoop;
  if (is_directory(place)) {
    if (flags.write || flags.truncate || flags.create) return Errno::kIsdir;
    return keep(place);
  }
  if (found.trailing_slash || flags.directory) return Errno::kNotdir;
  if (place.node->type == FileType::kRegularFile) {
    if ((flags.write || flags.truncate) && tree->read_only()) return Errno::kRofs;
    if (flags.truncate) SW_WASI_CHECK(tree->resize(*place.node, 0, now_ns()));
  }
  return keep(place);
}

ErrnoOr<NodeRef> FileSystem::open_at(const Place& at, std::string_view path,
                                     const OpenFlags& flags) {
  if (flags.create && flags.directory) return Errno::kInval;
  const bool follows = flags.follow == Follow::kYes && !(flags.create && flags.exclusive);
  Final final = final_of(follows ? Follow::kYes : Follow::kNo);
  if (flags.create) final = follows ? Final::kCreate : Final::kName;
  SW_WASI_TRY(const Found found, resolve(at, path, final));
  // A file cannot be made under a name that ends in a slash, whatever is there.
  if (flags.create && found.last == Last::kName && found.trailing_slash) return Errno::kIsdir;
  if (found.node) return open_existing(found, flags);
  if (!flags.create) return Errno::kNoent;
  const auto& tree = tree_of(found.parent.mount);
  SW_WASI_TRY(auto node,
              tree->create(*found.parent.node, found.name, FileType::kRegularFile, now_ns()));
  return NodeRef{tree, std::move(node), found.parent.mount};
}

ErrnoOr<Place> FileSystem::find_at(const Place& at, std::string_view path, Follow follow) {
  SW_WASI_TRY(const Found found, resolve(at, path, final_of(follow)));
  if (!found.node) return Errno::kNoent;
  if (found.trailing_slash && !is_directory(found.node)) return Errno::kNotdir;
  return found.node;
}

ErrnoOr<Stat> FileSystem::stat_at(const Place& at, std::string_view path, Follow follow) {
  SW_WASI_TRY(const Place place, find_at(at, path, follow));
  return stat_of(*place.node, place.mount);
}

Errno FileSystem::set_times(const Place& place, const NewTimes& times) {
  const auto& tree = tree_of(place.mount);
  if (tree->disabled()) return Errno::kAcces;
  if (tree->read_only()) return Errno::kRofs;
  const Timestamps& old = place.node->times;
  tree->set_times(*place.node, {.accessed = times.accessed.value_or(old.accessed),
                                .modified = times.modified.value_or(old.modified),
                                .changed = now_ns()});
  return Errno::kSuccess;
}

Errno FileSystem::set_times_at(const Place& at, std::string_view path, Follow follow,
                               const NewTimes& times) {
  SW_WASI_TRY(const Place place, find_at(at, path, follow));
  return set_times(place, times);
}

Errno FileSystem::make_directory_at(const Place& at, std::string_view path) {
  SW_WASI_TRY(const Found found, resolve(at, path, Final::kName));
  if (found.node) return Errno::kExist;
  return tree_of(found.parent.mount)
      ->create(*found.parent.node, found.name, FileType::kDirectory, now_ns())
      .error();
}

Errno FileSystem::remove_directory_at(const Place& at, std::string_view path) {
  SW_WASI_TRY(const Found found, resolve(at, path, Final::kName));
  if (found.last == Last::kDot)
    return found.node.node == root().node ? Errno::kBusy : Errno::kInval;
  if (found.last == Last::kDotDot) return Errno::kNotempty;
  if (!found.node) return Errno::kNoent;
  return tree_of(found.parent.mount)->remove_directory(*found.parent.node, found.name, now_ns());
}

Errno FileSystem::unlink_at(const Place& at, std::string_view path) {
  SW_WASI_TRY(const Found found, resolve(at, path, Final::kName));
  if (found.last != Last::kName) return Errno::kIsdir;
  if (!found.node) return Errno::kNoent;
  if (found.trailing_slash && !is_directory(found.node)) return Errno::kNotdir;
  return tree_of(found.parent.mount)->unlink(*found.parent.node, found.name, now_ns());
}

Errno FileSystem::rename_at(const Place& from_at, std::string_view from, const Place& to_at,
                            std::string_view to) {
  SW_WASI_TRY(const Found source, resolve(from_at, from, Final::kName));
  SW_WASI_TRY(const Found target, resolve(to_at, to, Final::kName));
  if (source.last != Last::kName || target.last != Last::kName) return Errno::kBusy;
  if (!source.node) return Errno::kNoent;
  if (!is_directory(source.node) && (source.trailing_slash || target.trailing_slash))
    return Errno::kNotdir;
  if (!is_same_tree(source.parent, target.parent)) return Errno::kXdev;
  return tree_of(source.parent.mount)
      ->rename(*source.parent.node, source.name, *target.parent.node, target.name, now_ns());
}

Errno FileSystem::link_at(const Place& from_at, std::string_view from, Follow follow,
                          const Place& to_at, std::string_view to) {
  SW_WASI_TRY(const Place source, find_at(from_at, from, follow));
  SW_WASI_TRY(const Found target, resolve(to_at, to, Final::kName));
  if (target.node) return Errno::kExist;
  if (target.trailing_slash) return Errno::kNoent;
  if (!is_same_tree(source, target.parent)) return Errno::kXdev;
  return tree_of(source.mount)
      ->link(*target.parent.node, target.name, source.node->shared_from_this(), now_ns());
}

Errno FileSystem::symlink_at(std::string_view target, const Place& at, std::string_view path) {
  if (target.empty()) return Errno::kNoent;  // as on Linux, whatever is at `path`
  SW_WASI_TRY(const Found found, resolve(at, path, Final::kName));
  if (found.node) {
    return found.trailing_slash && !is_directory(found.node) ? Errno::kNotdir : Errno::kExist;
  }
  if (found.trailing_slash) return Errno::kNoent;
  return tree_of(found.parent.mount)
      ->create_symlink(*found.parent.node, found.name, target, now_ns())
      .error();
}

ErrnoOr<std::string> FileSystem::readlink_at(const Place& at, std::string_view path) {
  SW_WASI_TRY(const Place place, find_at(at, path, Follow::kNo));
  if (place.node->type != FileType::kSymbolicLink) return Errno::kInval;
  return place.node->target;
}

}  // namespace sw::wasi
