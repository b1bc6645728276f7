// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "workspace/walk.h"

#include <fmt/format.h>

#include <vector>

#include "sandbox_workers/wasi/layout.h"
#include "sandbox_workers/workspace/workspace.h"
#include "workspace/names.h"

namespace sw {

namespace {

using wasi::Errno;
using wasi::FileType;
using wasi::Node;

class Walk {
 public:
  Walk(wasi::Tree& tree, std::string_view path) : path_(path), directories_{&tree.root()} {
    push(path);
  }

  Result<ResolvedPath> run(LastLink last) {
    ResolvedPath resolved{
        .parent = nullptr, .name = {}, .node = directories_.back()->shared_from_this()};
    while (!todo_.empty()) {
      const std::string part = std::move(todo_.back());
      todo_.pop_back();
      if (part == "..") {
        if (directories_.size() == 1) return escapes();
        directories_.pop_back();
        resolved = {.parent = nullptr, .name = {}, .node = directories_.back()->shared_from_this()};
        continue;
      }
      Node& directory = *directories_.back();
      const auto entry = directory.directory->find(part);
      if (!entry.ok()) return fail(entry.error());
      if (*entry == nullptr && !todo_.empty()) return fail(Errno::kNoent);
      resolved = {.parent = &directory, .name = part, .node = *entry ? (*entry)->node : nullptr};
      if (!resolved.node) return resolved;
      if (resolved.node->type == FileType::kDirectory) {
        directories_.push_back(resolved.node.get());
      } else if (resolved.node->type == FileType::kSymbolicLink &&
                 (!todo_.empty() || last == LastLink::kFollow)) {
        if (++links_ > wasi::kSymlinksFollowedMax) return fail(Errno::kLoop);
        if (!follow(resolved.node->target)) return escapes();
        resolved = {.parent = nullptr, .name = {}, .node = directories_.back()->shared_from_this()};
      } else if (!todo_.empty()) {
        return fail(Errno::kNotdir);
      }
    }
    return resolved;
  }

 private:
  /// Puts the parts of a path before what is left to do.
  void push(std::string_view path) {
    std::vector<std::string> parts;
    while (!path.empty()) {
      const std::size_t slash = path.find('/');
      const std::string_view part = path.substr(0, slash);
      if (!part.empty() && part != ".") parts.emplace_back(part);
      path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    }
    if (is_first_) {
      parts.erase(parts.begin());  // "workspace"
      is_first_ = false;
    }
    todo_.insert(todo_.end(), parts.rbegin(), parts.rend());
  }

  bool follow(std::string_view target) {
    if (target.front() != '/') {
      push(target);
      return true;
    }
    while (target.starts_with("//")) target.remove_prefix(1);
    for (const std::string_view root : {kWorkspaceRoot, wasi::kHomePath}) {
      if (!target.starts_with(root)) continue;
      const std::string_view below = target.substr(root.size());
      if (!below.empty() && below.front() != '/') continue;
      directories_.resize(1);
      push(below);
      return true;
    }
    return false;
  }

  Error fail(Errno error) const {
    return file_error(error, fmt::format("{}: {}", path_, wasi::errno_text(error)));
  }
  Error escapes() const {
    return file_error(Errno::kAcces, fmt::format("Path escapes /workspace: {}", path_));
  }

  const std::string_view path_;
  std::vector<Node*> directories_;  // from the root to where the walk is
  std::vector<std::string> todo_;   // the next part is at the end
  bool is_first_ = true;
  std::size_t links_ = 0;
};

}  // namespace

Result<ResolvedPath> resolve_path(wasi::Tree& tree, std::string_view path, LastLink last) {
  return Walk(tree, path).run(last);
}

}  // namespace sw
