// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/base_chooser.h"

namespace sw::snapshot {

namespace {

std::uint32_t key_links_max(std::uint32_t page) {
  constexpr std::uint32_t kScatter = 2654435761U;
  return kKeyLinksMin + ((page * kScatter) >> 16U) % (kKeyLinksMax - kKeyLinksMin);
}

}  // namespace

bool BaseChooser::may_go_on(std::uint32_t page, const PageState& state,
                            std::uint32_t sequence) const {
  const std::uint32_t links_max = key_step_ ? key_links_max(page) : kChainLengthMax;
  return state.depth < links_max && sequence - state.chain_begin <= kChainSpanMax;
}

StoredBase BaseChooser::base_of(std::uint32_t page, std::uint32_t sequence) const {
  const PageState* const before = live_.table.find(page);
  if (before == nullptr || !before->stored()) return {};
  if (!key_step_ || in_key_step(*before)) {
    const Page* const recent = live_.recent.find(page);
    if (recent != nullptr && may_go_on(page, *before, sequence)) return {recent, before};
  }
  const KeyPage* const key = live_.key_pages.find(page);
  if (key == nullptr || !may_go_on(page, key->state, sequence)) return {};
  return {key->content.get(), &key->state};
}

}  // namespace sw::snapshot
