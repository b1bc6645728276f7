// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasi/path_walk.h"

#include <algorithm>
#include <utility>

namespace sw::wasi {

Errno PathWalk::go_up(bool literal) {
  const Place parent = files_.parent_of(current_);
  if (!parent) return Errno::kNoent;  // the directory was removed
  const bool at_root = parent.node == current_.node;
  if (literal && is_start() && !at_root) return Errno::kNotcapable;
  current_ = parent;
  return Errno::kSuccess;
}

Errno PathWalk::follow_link(const Node& link, std::string_view after) {
  if (++links_followed_ > kSymlinksFollowedMax) return Errno::kLoop;
  const std::size_t consumed = rest_.size() - after.size();
  const std::size_t links_left = from_links_ > consumed ? from_links_ - consumed : 0;
  std::string next;
  next.reserve(link.target.size() + after.size());
  next.append(link.target).append(after);
  expanded_ = std::move(next);  // only now: `after` may point into it
  rest_ = expanded_;
  from_links_ = link.target.size() + links_left;
  if (rest_.front() == '/') current_ = files_.root();
  return Errno::kSuccess;
}

ErrnoOr<FileSystem::Found> PathWalk::run(FileSystem::Final final) {
  for (;;) {
    const std::size_t slashes = std::min(rest_.find_first_not_of('/'), rest_.size());
    rest_.remove_prefix(slashes);
    from_links_ -= std::min(from_links_, slashes);
    // Nothing left: a link to "/" alone, or a path of slashes.
    if (rest_.empty()) return Found{{}, "", current_, FileSystem::Last::kDot, true};
    const bool literal = from_links_ == 0;
    const std::string_view name = rest_.substr(0, rest_.find('/'));
    const std::string_view after = rest_.substr(name.size());
    const bool is_last = after.find_first_not_of('/') == std::string_view::npos;
    const bool trailing = is_last && !after.empty();
    if (!current_.node->has_children()) return Errno::kNotdir;
    if (name == "." || name == "..") {
      if (name == "..") SW_WASI_CHECK(go_up(literal));
      const auto last = name == "." ? FileSystem::Last::kDot : FileSystem::Last::kDotDot;
      if (is_last) return Found{{}, "", current_, last, trailing};
    } else {
      if (name.size() > kNameBytesMax) return Errno::kNametoolong;
      SW_WASI_TRY(const Directory::Entry* const entry, current_.node->directory->find(name));
      if (!entry) {
        if (!is_last) return Errno::kNoent;
        return Found{current_, std::string(name), {}, FileSystem::Last::kName, trailing};
      }
      Place child{current_.mount, entry->node.get()};
      const bool follows = !is_last || final == FileSystem::Final::kFollow ||
                           (final == FileSystem::Final::kNoFollow && trailing) ||
                           (final == FileSystem::Final::kCreate && !trailing);
      if (child.node->type == FileType::kSymbolicLink && follows) {
        SW_WASI_CHECK(follow_link(*child.node, after));
        continue;
      }
      SW_WASI_TRY(child, files_.enter(child));
      if (is_last)
        return Found{current_, std::string(name), child, FileSystem::Last::kName, trailing};
      current_ = child;
    }
    from_links_ -= std::min(from_links_, name.size());
    rest_ = after;
  }
}

}  // namespace sw::wasi
