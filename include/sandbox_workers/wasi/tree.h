// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file tree in memory with limits: a sandbox's /workspace, an instance's /tmp, or the immutable
// layout that holds the read-only files. Works on directories and names; paths are file_system.h's.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "sandbox_workers/wasi/node.h"
#include "sandbox_workers/wasi/tree_limits.h"

namespace sw::wasi {

class TreeJournal;
class TreeState;

inline constexpr std::size_t kNameBytesMax = 255;
inline constexpr std::size_t kPathBytesMax = 4096;
inline constexpr std::size_t kSymlinksFollowedMax = 40;

/// Threads: one at a time, except that an immutable tree may be read by many.
/// Lifetime: outlives its nodes; who keeps a node keeps the tree.
class Tree {
 public:
  explicit Tree(const TreeLimits& limits, std::uint64_t now_ns);
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  ~Tree();

  Node& root() { return *root_; }
  const Node& root() const { return *root_; }
  const TreeLimits& limits() const { return limits_; }
  void set_limits(const TreeLimits& limits) { limits_ = limits; }
  const TreeUsage& usage() const { return usage_; }

  bool read_only() const { return read_only_; }
  void set_read_only(bool on) { read_only_ = on; }
  /// Every access fails with EACCES, through descriptors opened before too.
  bool disabled() const { return disabled_; }
  void set_disabled(bool on) { disabled_ = on; }

  // Each checks limits and read_only, and keeps link counts, times and usage. `directory` belongs
  // to this tree. Names are valid (see name_error), not "." or "..".

  /// The new node is empty. kExist when the name is taken.
  ErrnoOr<std::shared_ptr<Node>> create(Node& directory, std::string_view name, FileType type,
                                        std::uint64_t now_ns);
  ErrnoOr<std::shared_ptr<Node>> create_symlink(Node& directory, std::string_view name,
                                                std::string_view target, std::uint64_t now_ns);
  Errno link(Node& directory, std::string_view name, std::shared_ptr<Node> node,
             std::uint64_t now_ns);
  /// A name of anything but a directory.
  Errno unlink(Node& directory, std::string_view name, std::uint64_t now_ns);
  Errno remove_directory(Node& directory, std::string_view name, std::uint64_t now_ns);
  /// A name and, if it is a directory, all below it.
  Errno remove_all(Node& directory, std::string_view name, std::uint64_t now_ns);
  Errno rename(Node& from, std::string_view from_name, Node& to, std::string_view to_name,
               std::uint64_t now_ns);

  /// Writes what the limits leave room for; an error only if that is nothing.
  ErrnoOr<std::size_t> write(Node& file, std::uint64_t offset, BytesView bytes,
                             std::uint64_t now_ns);
  Errno resize(Node& file, std::uint64_t size, std::uint64_t now_ns);
  /// Is there room for the file to have this size? Then it can grow to it without being moved.
  Errno reserve(Node& file, std::uint64_t size);
  /// Replaces a file's content by bytes that are shared with others until it is written to.
  Errno set_content(Node& file, SharedBytes bytes, std::uint64_t now_ns);
  /// By bytes that become the file's own.
  Errno set_content(Node& file, Bytes bytes, std::uint64_t now_ns);
  /// Checks nothing.
  void set_times(Node& node, const Timestamps& times);

  /// A file without a name, as after open and unlink. Held to the limits, whether or not the tree
  /// is disabled.
  ErrnoOr<std::shared_ptr<Node>> create_unnamed_file(BytesView content, const Timestamps& times);

  /// Visits everything below the root in listing order, a directory before what is in it. `path`
  /// has no leading slash. Hard links are visited once per name. False from `visit` skips what is
  /// below.
  using Visit = std::function<bool(const std::string& path, Node& node)>;
  Errno walk(const Visit& visit) const;
  /// The same of what is below one of its directories, whose path is `path`.
  static Errno walk(const Node& directory, std::string path, const Visit& visit);

  /// What is in the tree now, in the time of what changed since this was last called (the first time,
  /// of all there is). Valid until the next call; its copies take no time and stay as they are.
  const TreeState& state();

 private:
  friend class LayoutBuilder;
  Errno writable() const;
  Errno room_for_entry() const;
  Errno room_for_size(const Node& file, std::uint64_t size) const;
  Errno replace_content(Node& file, std::uint64_t size, std::uint64_t now_ns);
  Errno room_for_depth(const Node& directory, std::uint32_t levels) const;
  std::shared_ptr<Node> make_node(FileType type, std::uint64_t now_ns);
  void note(Node& node) noexcept;
  void note_name(const Node& directory, std::string_view name) noexcept;
  void attach(Node& directory, std::string_view name, std::shared_ptr<Node> node,
              std::uint64_t now_ns);
  void detach(Node& directory, std::string_view name, std::uint64_t now_ns);
  Errno replace(Node& moved, Node& to, std::string_view to_name, Node& replaced,
                std::uint64_t now_ns);

  TreeLimits limits_;
  TreeUsage usage_;  // before root_: nodes give their bytes back as they die
  std::uint64_t next_inode_ = 1;
  bool read_only_ = false;
  bool disabled_ = false;
  std::unique_ptr<TreeJournal> journal_;  // kept once the state was asked for
  std::shared_ptr<Node> root_;
};

/// kSuccess, kNoent (empty), kNametoolong, kInval (NUL or slash), kIlseq (not UTF-8).
Errno name_error(std::string_view name);

}  // namespace sw::wasi
