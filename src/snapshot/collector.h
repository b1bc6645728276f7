// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the packs of a family of contexts that no version needs, in small steps between which the
// contexts go on.
//
// That is simple because packs never change: what cannot be reached from the versions that are kept
// when a collection starts can never be reached again, and what is written later is left alone. So
// a collection looks at one moment, however long it takes. All references lead to smaller sequence
// numbers; marking from the highest one down reads each pack once.
//
// The sweep goes from the highest key down. So the row of a version that is let go is erased before
// anything that it needs, and a crash between two steps leaves no row of a version that is damaged.
//
// A pack that is needed only in part is pruned: the rest is taken out, what remains keeps its
// names.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sandbox_workers/base/result.h"
#include "snapshot/pack_reader.h"

namespace sw::snapshot {

/// How many entries each pack has, as far as known.
using EntryCounts = std::map<PackId, std::size_t>;

/// Parts of a pack, by index.
class IndexSet {
 public:
  void insert(std::size_t first, std::size_t count = 1);
  bool contains(std::size_t index) const {
    return index / kBits < words_.size() && ((words_[index / kBits] >> index % kBits) & 1U) != 0;
  }
  std::size_t size() const;
  void for_each(const std::function<void(std::uint16_t index)>& each) const;

 private:
  static constexpr std::size_t kBits = 64;
  std::vector<std::uint64_t> words_;
};

struct CollectionRoots {
  std::set<PackId> versions;  ///< that are kept
  /// Rows of those that are not: whose history, and the sequence.
  std::set<PackId> leaving_rows;
  /// The last pack of each owner there is. Packs beyond it, and of owners from `owners_end` on,
  /// came later.
  std::map<std::uint32_t, std::uint32_t> last_sequence;
  std::uint32_t owners_end = 0;
};

struct CollectionBudget {
  std::size_t marked_packs = SIZE_MAX;
  std::size_t swept_rows = SIZE_MAX;
  std::size_t erased_packs = SIZE_MAX;
  std::size_t pruned_packs = SIZE_MAX;
  /// Packs are pruned that have at least so many bytes, …
  std::size_t prune_bytes_min = 16384;
  /// … when at most this part of their entries is needed.
  double prune_below = 0.5;
};

/// What a step of a collection wants changed in the storage.
struct CollectionStep {
  struct Change {
    PackId id;
    std::size_t bytes_before = 0;
    std::optional<Bytes> bytes = {};  ///< absent: it is erased
  };
  std::vector<Change> changes;
  std::vector<PackId> rows;   ///< of versions, that are erased
  std::string resume_before;  ///< where the sweep goes on
  bool finished = false;
};

class Collector {
 public:
  explicit Collector(CollectionRoots roots);

  bool marked() const { return work_.empty(); }
  /// What is needed and cannot be read; empty: nothing.
  const std::string& damage() const { return damage_; }
  /// Packs found to be needed.
  std::size_t needed_packs() const { return needed_.size(); }

  /// What a damaged pack needs is not known, so all that is as old as it or older stays.
  Result<void> mark(PackReader& packs, const CollectionBudget& budget);
  /// Looks at the next packs once all is marked. Deletes nothing; `advance` after the commit.
  Result<CollectionStep> sweep(storage::Reader& reader, storage::TableId table,
                               std::uint32_t family, PackReader& packs, EntryCounts& counts,
                               Compression& compression, const CollectionBudget& budget) const;
  void advance(const CollectionStep& step) { resume_before_ = step.resume_before; }

 private:
  struct Work {
    bool version = false;
    IndexSet nodes;
    IndexSet entries;  // that may be differences to stored pages
  };
  struct Needed {
    bool version = false;
    bool host_tables = false;
    IndexSet nodes;
    IndexSet entries;
  };
  struct HigherSequenceFirst {
    bool operator()(const PackId& a, const PackId& b) const {
      return a.sequence != b.sequence ? a.sequence > b.sequence : a.owner > b.owner;
    }
  };

  Result<void> mark_pack(PackReader& packs, PackId id, const Work& work);
  Result<void> mark_version(const Pack& pack);
  Result<void> mark_node(const Pack& pack, std::uint16_t index);
  Result<void> mark_chain(const Pack& pack, std::uint16_t index);
  bool is_old(PackId id) const;
  static bool is_sparse(PackId id, const Needed& needed, const EntryCounts& counts,
                        const CollectionBudget& budget);
  Result<std::optional<Bytes>> prune(PackReader& packs, PackId id, const Needed& needed,
                                     EntryCounts& counts, Compression& compression,
                                     const CollectionBudget& budget) const;

  CollectionRoots roots_;
  std::map<PackId, Work, HigherSequenceFirst> work_;
  std::map<PackId, Needed> needed_;
  std::uint32_t damaged_sequence_ = 0;  // of the newest pack that cannot be read
  std::string damage_;
  std::string resume_before_;
};

}  // namespace sw::snapshot
