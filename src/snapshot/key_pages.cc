// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/key_pages.h"

namespace sw::snapshot {

const KeyPage* KeyPages::find(std::uint32_t page) const {
  const auto found = pages_.find(page);
  return found == pages_.end() ? nullptr : &found->second;
}

void KeyPages::put(std::uint32_t page, const PageState& state, PageView content) {
  if (pages_.size() >= pages_max_) return;
  KeyPage& kept = pages_[page];
  kept.state = state;
  kept.content = std::make_unique<Page>();
  copy_page(content, kept.content->data());
}

}  // namespace sw::snapshot
