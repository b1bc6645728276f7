// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which stored page the difference of a changed one may be taken to. Chains of such differences
// have two levels: a page of a key step is the difference to what it was in an earlier key step, a
// page of another step to what it was last. So what was stored between two key steps can go once
// nobody goes back to it, and a restore reads the packs of some key steps and of those since.

#include <cstdint>

#include "snapshot/live_memory.h"
#include "snapshot/page_table.h"

namespace sw::snapshot {

/// A chain of differences to stored pages has at most so many links, …
inline constexpr std::uint32_t kChainLengthMax = 15;
/// … those from key step to key step so many (staggered, so that the pages of a step do not all
/// begin anew together), …
inline constexpr std::uint32_t kKeyLinksMin = 4;
inline constexpr std::uint32_t kKeyLinksMax = 7;
/// … and it lies within so many sequence numbers. All of these bound how many packs a restore
/// reads.
inline constexpr std::uint32_t kChainSpanMax = 96;

struct StoredBase {
  const Page* content = nullptr;  ///< null: there is none
  const PageState* state = nullptr;
};

class BaseChooser {
 public:
  BaseChooser(const LiveMemory::State& live, bool key_step) : live_(live), key_step_(key_step) {}

  /// For a page that is stored in a pack of that sequence.
  StoredBase base_of(std::uint32_t page, std::uint32_t sequence) const;
  /// Whether the page is stored in a pack of a key step.
  bool in_key_step(const PageState& state) const {
    return state.place.pack.sequence <= live_.key_sequence;
  }

 private:
  bool may_go_on(std::uint32_t page, const PageState& state, std::uint32_t sequence) const;

  const LiveMemory::State& live_;
  const bool key_step_;
};

}  // namespace sw::snapshot
