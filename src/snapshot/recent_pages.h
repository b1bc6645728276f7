// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The stored content of the pages that change most often: the next difference is taken to it, and
// is several times smaller than the one to the image.

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "snapshot/page.h"

namespace sw::snapshot {

class RecentPages {
 public:
  explicit RecentPages(std::size_t bytes_max) : pages_max_(bytes_max / kPageBytes) {}

  const Page* find(std::uint32_t page) const;
  /// Keeps a copy, in place of the page that was put longest ago. When that too was put at `step`,
  /// the new one is left out: a step that changes more than fits shall not push out what it has
  /// just put.
  void put(std::uint32_t page, PageView content, std::uint32_t step);
  void erase(std::uint32_t page);

  std::size_t bytes() const { return blocks_.size() * sizeof(Block); }

 private:
  struct Kept {
    std::uint32_t page = 0;
    std::uint32_t step = 0;
    Page* content = nullptr;
  };
  /// Pages are allocated together: one by one, each would make the C library ask the kernel.
  using Block = std::array<Page, 32>;

  Page* take_room();

  std::size_t pages_max_;
  std::list<Kept> order_;  // longest ago first
  std::unordered_map<std::uint32_t, std::list<Kept>::iterator> pages_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<Page*> rooms_;  // of the blocks, without content
};

}  // namespace sw::snapshot
