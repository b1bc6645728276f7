// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "workspace/names.h"

namespace sw {

using wasi::Errno;

std::string absolute_path(std::string_view below) {
  std::string path;
  path.reserve(kWorkspaceRoot.size() + 1 + below.size());
  path.append(kWorkspaceRoot).append("/").append(below);
  return path;
}

wasi::ErrnoOr<TreeName> find_name(wasi::Tree& tree, std::string_view path) {
  if (!path.starts_with(kWorkspaceRoot)) return Errno::kInval;
  path.remove_prefix(kWorkspaceRoot.size());
  if (path.empty() || path.front() != '/') return Errno::kInval;
  path.remove_prefix(1);
  wasi::Node* directory = &tree.root();
  for (;;) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return Errno::kInval;
    if (slash == std::string_view::npos) return TreeName{directory, part};
    path.remove_prefix(slash + 1);
    if (directory == nullptr) continue;  // the rest is still checked
    SW_WASI_TRY(const wasi::Directory::Entry* const entry, directory->directory->find(part));
    const bool leads_on = entry != nullptr && entry->node->type == wasi::FileType::kDirectory;
    directory = leads_on ? entry->node.get() : nullptr;
  }
}

}  // namespace sw
