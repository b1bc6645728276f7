// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restorer.h"

#include <fmt/format.h>

#include <algorithm>

#include "snapshot/step_encoder.h"

namespace sw::snapshot {

namespace {

Error damaged(std::uint32_t page, std::string_view what) {
  return Error{ErrorCode::kCorrupt,
               fmt::format("page {} of the memory cannot be restored: {}", page, what)};
}

}  // namespace

Result<void> Restorer::restore(const Version& version, std::uint32_t newest_sequence) {
  for (const RegionRef& region : version.regions) SW_CHECK_OK(restore_region(region));
  if (live_.digest != version.digest || live_.stored_pages != version.pages) {
    return Error{ErrorCode::kCorrupt,
                 "the pages of the memory are intact, but not those of this version"};
  }
  return keep_recent_pages(newest_sequence);
}

Result<void> Restorer::restore_region(const RegionRef& region) {
  SW_TRY(const RegionPlaces places, read_region(packs_, region));
  for (std::uint32_t i = 0; i < kRegionPages; ++i) {
    const RegionPlaces::Place& place = places.pages[i];
    if (!place.entry.pack) continue;
    SW_CHECK_OK(restore_page(region.region * kRegionPages + i, place.entry, place.plain));
  }
  PageTable::StoredRegion& stored = live_.table.region(region.region);
  stored.node = region.node;
  stored.base = places.base;
  return {};
}

Result<void> Restorer::restore_page(std::uint32_t page, PackRef place, bool plain) {
  if ((std::size_t{page} + 1) * kPageBytes > memory_.memory_bytes())
    return damaged(page, "it is outside the memory");
  PageState& state = live_.table.at(page);
  state.place = place;
  Page content = {};
  SW_CHECK_OK(build_page(page, state, content));
  if (plain != (state.depth == 0)) return damaged(page, "its entry does not match the page table");
  SW_TRY(const PageSpan room, memory_.write(page));
  copy_page(content, room.data());
  live_.digest += digest_share(page, state.hash);
  ++live_.stored_pages;
  ++live_.pages_in_pack[place.pack];
  ++pages_written_;
  return {};
}

/// Applies the differences from the page's own back to the one where its chain begins.
Result<void> Restorer::build_page(std::uint32_t page, PageState& state, Page& content) {
  std::uint32_t check = 0;
  PackRef at = state.place;
  for (std::uint32_t depth = 0; depth <= kChainLengthMax; ++depth) {
    if (!pack_ || pack_->id != at.pack) {
      auto pack = packs_.pack(at.pack);
      if (!pack.ok()) return damaged(page, pack.error().message);
      pack_ = *std::move(pack);
    }
    const auto entry = find_entry(*pack_, at.index);
    if (!entry.ok()) return damaged(page, entry.error().message);
    if (depth == 0) check = (*entry)->check;
    SW_TRY(const Against against, apply(page, *pack_, **entry, content));
    if (against == Against::kStored) {
      at = (*entry)->base;
      continue;
    }
    state.depth = static_cast<std::uint8_t>(depth);
    state.chain_begin = at.pack.sequence;
    state.hash = page_hash(content);
    state.hashed = true;
    if (static_cast<std::uint32_t>(state.hash) != check)
      return damaged(page, "its content does not match its checksum");
    return {};
  }
  return damaged(page, "its chain of differences is too long");
}

Result<Against> Restorer::apply(std::uint32_t page, const Pack& pack, const Entry& entry,
                                Page& content) {
  if (entry.page != page) return damaged(page, fmt::format("its entry is for page {}", entry.page));
  const BytesView difference = BytesView(pack.differences).subspan(entry.offset, entry.size);
  if (entry.whole) xor_into(content, difference.first<kPageBytes>());
  else if (!apply_sparse(content, difference)) return damaged(page, "its difference is invalid");
  if (entry.against == Against::kImage) {
    if ((std::size_t{page} + 1) * kPageBytes > image_.size())
      return damaged(page, "the image has no such page");
    xor_into(content, page_at(image_, page));
  }
  return entry.against;
}

/// The pages written last are those most likely to be written next.
Result<void> Restorer::keep_recent_pages(std::uint32_t newest_sequence) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pages;  // {sequence, page}
  for (const auto& [region, stored] : live_.table.regions()) {
    for (std::uint32_t i = 0; i < kRegionPages; ++i) {
      const PageState& state = (*stored.pages)[i];
      if (state.stored() && newest_sequence - state.place.pack.sequence <= kChainSpanMax) {
        pages.emplace_back(state.place.pack.sequence, region * kRegionPages + i);
      }
    }
  }
  std::sort(pages.begin(), pages.end());
  for (const auto& [sequence, page] : pages) {
    SW_TRY(const PageSpan written, memory_.write(page));
    live_.recent.put(page, written, sequence);
  }
  return {};
}

}  // namespace sw::snapshot
