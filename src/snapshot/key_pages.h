// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the pages that changed since the last key step were in it: the next key step's differences
// are taken to it, so that they need nothing of what was stored between the two.

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "snapshot/page_table.h"

namespace sw::snapshot {

struct KeyPage {
  PageState state;
  std::unique_ptr<Page> content;
};

class KeyPages {
 public:
  explicit KeyPages(std::size_t bytes_max) : pages_max_(bytes_max / kPageBytes) {}

  const KeyPage* find(std::uint32_t page) const;
  /// Keeps a copy, unless there is no room: then the next key step writes the page anew.
  void put(std::uint32_t page, const PageState& state, PageView content);
  void clear() { pages_.clear(); }

  std::size_t bytes() const { return pages_.size() * kPageBytes; }

 private:
  std::size_t pages_max_;
  std::unordered_map<std::uint32_t, KeyPage> pages_;
};

}  // namespace sw::snapshot
