// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Putting entries in place, for what keeps two copies of a workspace alike. Everything here works on
// names, never through links: a link is an entry like others.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "sandbox_workers/workspace/workspace.h"
#include "workspace/names.h"

namespace sw {

inline constexpr std::uint64_t kNsPerMs = 1'000'000;

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

/// Puts single entries in place, whatever was there.
class Placer {
 public:
  Placer(wasi::Tree& tree, std::uint64_t now_ns) : unlimited_(tree), tree_(tree), now_ns_(now_ns) {}

  Result<void> directory(std::string_view path);
  Result<void> file(const WorkspaceFile& file);
  Result<void> link(std::string_view path, std::string_view target);
  /// Whatever is there, if anything is.
  Result<void> remove(std::string_view path);
  /// What is there, but no folder with something in it.
  Result<void> remove_unless_filled(std::string_view path);

 private:
  Result<TreeName> locate(std::string_view path);
  Result<void> remove(std::string_view path, const TreeName& name);
  Result<void> fill(wasi::Node& place, const WorkspaceFile& file);

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

/// Folders, then files, then links.
Result<void> place_all(Placer& placer, const Folders& folders, std::span<const WorkspaceFile> files,
                       const std::map<std::string, std::string>& links);

}  // namespace sw
