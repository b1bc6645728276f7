// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is in a tree at one moment: to see later what changed, and to put it back. Contents are
// shared with the tree, not copied, until one of the two writes. States of one tree share what is
// equal in them, so that a copy takes no time, and a comparison that of what differs.

#include <string>
#include <string_view>
#include <vector>

#include "base/persistent_map.h"
#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasi/tree.h"

namespace sw::wasi {

struct Change {
  enum class Kind : std::uint8_t { kCreated, kModified, kRemoved };
  Kind kind = Kind::kModified;
  FileType type = FileType::kRegularFile;  ///< what is there now; of kRemoved, what was
  std::string path;                        ///< relative to the tree's root
  bool operator==(const Change&) const = default;
};

/// Whether a state can have an entry of this path: names with slashes between them, none of them dots.
bool is_path(std::string_view path);

class TreeState {
 public:
  struct Entry {
    FileType type = FileType::kUnknown;
    SharedBytes bytes;   ///< of a file
    std::string target;  ///< of a link
    Timestamps times;

    static Entry of(const Node& node);
    /// The same bytes at the same place, and the same times: nothing happened between the two.
    bool is_untouched(const Entry& later) const;
    /// Times do not count.
    bool has_content_of(const Entry& other) const;
  };
  using Entries = PersistentMap<Entry>;

  TreeState() = default;
  explicit TreeState(Entries entries) : entries_(std::move(entries)) {}
  /// By looking at all of it. Tree::state gives the same and looks at what changed.
  static TreeState of(const Tree& tree);

  const Entries& entries() const { return entries_; }
  Entries& entries() { return entries_; }

  /// What differs in `after`, by path. A file written to with the bytes it had is the same; times
  /// do not count.
  std::vector<Change> changes_to(const TreeState& after) const;

  /// Makes the tree as it was. Nodes that are still there keep their identity, so files that are
  /// open stay so.
  /// Errors: kNospc and such when limits were lowered meanwhile.
  Errno restore(Tree& tree, std::uint64_t now_ns) const;

  /// Bytes of contents and names.
  std::uint64_t bytes() const;
  /// Format: docs/formats/session.md.
  Bytes serialize() const;
  /// `blob` may come from anywhere; the paths are ones that a tree can have. Errors: kCorrupt.
  static Result<TreeState> parse(BytesView blob);

 private:
  Entries entries_;
};

}  // namespace sw::wasi
