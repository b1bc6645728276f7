// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// From nodes back to paths. Files do not know their names (they may have several), so their tree is
// searched.

#include <algorithm>
#include <utility>

#include "sandbox_workers/wasi/file_system.h"

namespace sw::wasi {
namespace {

/// Appends the path from `directory` to `wanted`; false if it is not below.
bool find_below(const Node& directory, const Node& wanted, std::string& path) {
  bool found = false;
  (void)directory.directory->for_each(0, [&](std::string_view name, const Directory::Entry& entry) {
    const std::size_t length = path.size();
    path.append("/").append(name);
    found = entry.node.get() == &wanted ||
            (entry.node->has_children() && find_below(*entry.node, wanted, path));
    if (!found) path.resize(length);
    return !found;
  });
  return found;
}

}  // namespace

ErrnoOr<std::string> FileSystem::path_of_directory(Place place) {
  std::string path;
  while (place.node != root().node) {
    if (place.mount >= 0 && place.node == &tree_of(place.mount)->root()) {
      place = {-1, layout_->mount_point(place.mount)};
    }
    const Node* const parent = place.node->parent;
    if (!parent) return Errno::kNoent;
    std::string name;
    SW_WASI_CHECK(parent->directory->for_each(
        0, [&](std::string_view candidate, const Directory::Entry& entry) {
          if (entry.node.get() == place.node) name = candidate;
          return name.empty();
        }));
    path = "/" + name + path;
    place.node = place.node->parent;
  }
  return path.empty() ? "/" : path;
}

ErrnoOr<std::string> FileSystem::canonical_path(const NodeRef& ref) {
  if (ref.node->type == FileType::kDirectory) return path_of_directory({ref.mount, ref.node.get()});
  if (ref.node->links == 0) return Errno::kNoent;
  SW_WASI_TRY(std::string path, path_of_directory({ref.mount, &ref.tree->root()}));
  if (path == "/") path.clear();
  if (!find_below(ref.tree->root(), *ref.node, path)) return Errno::kNoent;
  return path;
}

ErrnoOr<NodeRef> FileSystem::find_canonical(std::string_view path) {
  if (path.empty() || path.front() != '/' || path.size() > kPathBytesMax) return Errno::kInval;
  Place place = root();
  for (std::string_view rest = path.substr(1); !rest.empty();) {
    const std::string_view name = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    if (!place.node->has_children()) return Errno::kNotdir;
    SW_WASI_TRY(const Directory::Entry* const entry, place.node->directory->find(name));
    if (!entry) return Errno::kNoent;
    place.node = entry->node.get();
    if (place.node->mount >= 0) place = {place.node->mount, &tree_of(place.node->mount)->root()};
  }
  return keep(place);
}

ErrnoOr<std::string> FileSystem::real_path(std::string_view path) {
  SW_WASI_TRY(const std::string_view below, below_root(path));
  SW_WASI_TRY(const Found found, resolve(root(), below, Final::kFollow));
  if (!found.node) return Errno::kNoent;
  if (found.node.node->type == FileType::kDirectory) return path_of_directory(found.node);
  if (found.trailing_slash) return Errno::kNotdir;
  SW_WASI_TRY(std::string directory, path_of_directory(found.parent));
  if (directory == "/") directory.clear();
  return directory + "/" + found.name;
}

}  // namespace sw::wasi
