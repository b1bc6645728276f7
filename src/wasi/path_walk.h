// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "sandbox_workers/wasi/file_system.h"

namespace sw::wasi {

/// One resolution of a path, component by component. A link puts its target in front of what is
/// left of the path; `literal_` is where in that text the caller's own components begin, since only
/// those are held to stay below the directory they start from.
class PathWalk {
 public:
  PathWalk(FileSystem& files, const Place& at, std::string_view path)
      : files_(files), at_(at), current_(at), rest_(path) {}

  ErrnoOr<FileSystem::Found> run(FileSystem::Final final);

 private:
  using Found = FileSystem::Found;

  Errno go_up(bool literal);
  Errno follow_link(const Node& link, std::string_view after);
  bool is_start() const { return current_.node == at_.node && current_.mount == at_.mount; }

  FileSystem& files_;
  const Place at_;
  Place current_;
  std::string_view rest_;
  std::string expanded_;        // what rest_ points into once a link was followed
  std::size_t from_links_ = 0;  // bytes at the start of rest_ that come from links
  std::size_t links_followed_ = 0;
};

}  // namespace sw::wasi
