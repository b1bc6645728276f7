// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/recent_pages.h"

namespace sw::snapshot {

const Page* RecentPages::find(std::uint32_t page) const {
  const auto found = pages_.find(page);
  return found == pages_.end() ? nullptr : found->second->content;
}

void RecentPages::put(std::uint32_t page, PageView content, std::uint32_t step) {
  if (pages_max_ == 0) return;
  auto found = pages_.find(page);
  if (found == pages_.end() && pages_.size() >= pages_max_) {
    if (order_.front().step == step) return;
    erase(order_.front().page);
  }
  if (found == pages_.end()) {
    order_.push_back({page, step, take_room()});
    found = pages_.emplace(page, std::prev(order_.end())).first;
  } else {
    order_.splice(order_.end(), order_, found->second);
    found->second->step = step;
  }
  copy_page(content, found->second->content->data());
}

Page* RecentPages::take_room() {
  if (rooms_.empty()) {
    blocks_.push_back(std::make_unique_for_overwrite<Block>());
    for (Page& page : *blocks_.back()) rooms_.push_back(&page);
  }
  Page* const room = rooms_.back();
  rooms_.pop_back();
  return room;
}

void RecentPages::erase(std::uint32_t page) {
  const auto found = pages_.find(page);
  if (found == pages_.end()) return;
  rooms_.push_back(found->second->content);
  order_.erase(found->second);
  pages_.erase(found);
}

}  // namespace sw::snapshot
