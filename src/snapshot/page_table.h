// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is stored of a live memory, page by page, as the saving side keeps it.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "snapshot/pack.h"

namespace sw::snapshot {

struct PageState {
  PackRef place;                  ///< no pack: the page is as in the image (or zero beyond it)
  std::uint8_t depth = 0;         ///< length of the chain of differences to stored pages
  bool hashed = false;            ///< `hash` is that of the content; not so when unread
  std::uint32_t chain_begin = 0;  ///< sequence of the pack where the chain begins
  std::uint64_t hash = 0;

  bool stored() const { return static_cast<bool>(place.pack); }
  /// A restore left it out: the memory holds nothing of it, and all that is known is where it is
  /// and, from `depth`, whether it is a difference to a stored page.
  bool unread() const { return stored() && !hashed; }
};

using Region = std::array<PageState, kRegionPages>;

/// The stored pages of a region, for a table node; those in packs after `sequence`.
std::vector<PageRun> runs_of(const Region& region, std::uint32_t sequence = 0);

/// One page's share of a version's digest, which is the sum of all of them.
std::uint64_t digest_share(std::uint32_t page, std::uint64_t hash);

class PageTable {
 public:
  struct StoredRegion {
    std::unique_ptr<Region> pages;
    PackRef node;  ///< no pack: no page of it is stored
    PackRef base;  ///< the last node of it that has no base, as long as no page of it was removed
  };

  /// Null when nothing is known of the page: it is as in the image.
  const PageState* find(std::uint32_t page) const;
  PageState& at(std::uint32_t page);

  StoredRegion& region(std::uint32_t region) { return regions_[region]; }
  const std::map<std::uint32_t, StoredRegion>& regions() const { return regions_; }

 private:
  std::map<std::uint32_t, StoredRegion> regions_;
};

}  // namespace sw::snapshot
