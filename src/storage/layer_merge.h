// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Merging layers of one object's stack into a new one, so that stacks do not grow without bound
// (ADR 0022).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "storage/layered_storage.h"
#include "storage/merged_rows.h"

namespace sw::storage {

/// Stacks are left alone up to this depth.
inline constexpr std::size_t kShallowStack = 8;
/// Beyond this one they are merged whatever it costs.
inline constexpr std::size_t kDeepStack = 32;

/// How many layers to merge, from the first below the topmost on, in a stack of that depth; 0: none.
/// `sizes` are those of the layers that could be, in bytes. A layer takes part if it is at most twice
/// as large as those above it together: so the sizes that are left grow geometrically, and a row is
/// rewritten only when its layer becomes larger by half.
std::size_t layers_to_merge(std::size_t depth, const std::vector<std::uint64_t>& sizes);

/// A merge that is under way. The layers below the topmost change no more, so their rows are read
/// without holding the object, a piece at a time, and committed to a new layer that nobody has yet.
/// Together with the last piece it takes its place in the stack.
class LayeredStorage::LayerMerge {
 public:
  struct Plan {
    std::vector<LayerPtr> from;  ///< topmost first
    LayerPtr into;
    bool lowest = false;  ///< nothing is below: what is erased need not be remembered
  };
  LayerMerge(LayeredStorage& storage, ObjectName name, Plan plan)
      : storage_(storage), name_(std::move(name)), plan_(std::move(plan)) {}

  enum class State : std::uint8_t {
    kGoesOn,
    kDone,
    kObsolete,  ///< the object is another now, or damaged
  };
  /// Commits a piece of bounded size.
  Result<State> step();

  const ObjectName& name() const { return name_; }
  std::vector<LayerNumber> from() const;
  /// The layer that could not be read.
  std::optional<LayerNumber> unreadable() const { return unreadable_; }

 private:
  /// False: these are the last.
  Result<bool> read_piece(Rows& piece);
  Result<bool> open_table();
  Result<void> take(const StoredRow& row, Rows& piece);
  Result<State> put_in_place(Rows last_piece);
  /// Whether the object still has the layers, and nothing is known to be wrong with them.
  Result<bool> is_possible(Reader& directory, const std::optional<ObjectEntry>& entry) const;

  LayeredStorage& storage_;
  const ObjectName name_;
  const Plan plan_;
  std::optional<TableId> table_ = TableId{0};  // from which on rows are left
  std::unique_ptr<MergedRows> rows_;           // of that table
  std::optional<LayerNumber> unreadable_;
};

}  // namespace sw::storage
