// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What changed in a tree since its state was last asked for, so that only that is looked at when it
// is asked for again.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "sandbox_workers/wasi/tree.h"
#include "wasi/tree_state.h"

namespace sw::wasi {

/// A tree tells it what it does, afterwards or before. What is noted is bounded: if it becomes too
/// much, or memory is short, all may have changed.
///
/// Paths are noted as they are when something happens there. Should a directory on the way be moved
/// later, then both places are noted with all that is below them; so a path that is stale by then
/// does no harm, and what it stood for is covered.
/// Threads: the tree's.
class TreeJournal {
 public:
  /// The content or the times of a node changed. It is noted under all its names, once in a period:
  /// names that it gets later are noted themselves.
  void note(Node& node) noexcept {
    if (node.noted != period_) note_names(node);
  }
  /// A name came or went, or leads elsewhere. With it goes all that is below it.
  void note_name(const Node& directory, std::string_view name) noexcept;

  /// What is in the tree now. A new period begins.
  const TreeState& state(const Tree& tree);

 private:
  enum class Extent : std::uint8_t { kEntry, kAllBelow };

  void note_names(Node& node) noexcept;
  void add(const Node& directory, std::string_view name, Extent extent);
  void note_all() noexcept;
  bool is_covered(std::string_view path) const;
  void look_at(const Tree& tree, const std::string& path, Extent extent);
  void look_below(const Node* directory, const std::string& path);
  void set(const std::string& path, const Node& node);

  TreeState state_;
  std::uint64_t period_ = 1;
  bool all_ = true;
  std::map<std::string, Extent, std::less<>> noted_;  // by path
  std::size_t noted_bytes_ = 0;
};

}  // namespace sw::wasi
