// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "snapshot/step_encoder.h"

namespace sw::snapshot {

namespace {

/// Of a page that is a difference to a stored one: no further difference is taken to it.
constexpr std::uint8_t kDepthUnknown = kChainLengthMax;
constexpr std::size_t kRegionBytes = std::size_t{kRegionPages} * kPageBytes;
/// Pages that are not stored and are written together.
constexpr std::uint32_t kUnstoredPagesAtOnce = 16;

Error damaged(std::uint32_t page, std::string_view what) {
  return Error{ErrorCode::kCorrupt,
               fmt::format("page {} of the memory cannot be restored: {}", page, what)};
}

Error not_of_this_version() {
  return Error{ErrorCode::kCorrupt,
               "the pages of the memory are intact, but not those of this version"};
}

}  // namespace

/// All pages count as unread until they are read.
Result<void> Restorer::restore(const Version& version, std::uint32_t newest_sequence,
                               const LeaveOut& leave_out) {
  live_.digest = live_.unread_digest = version.digest;
  for (const RegionRef& region : version.regions) SW_CHECK_OK(read_node(region));
  if (live_.stored_pages != version.pages) return not_of_this_version();
  std::vector<ByteRange> parts = large_parts();
  if (parts.empty() || !leave_out || !leave_out(parts)) parts.clear();
  SW_CHECK_OK(restore_all_but(parts));
  if (!parts.empty()) SW_CHECK_OK(read_ahead());
  if (live_.unread_pages == 0 && live_.unread_digest != 0) return not_of_this_version();
  return keep_recent_pages(newest_sequence);
}

Result<void> Restorer::read_node(const RegionRef& region) {
  SW_TRY(const RegionPlaces places, read_region(packs_, region));
  PageTable::StoredRegion& stored = live_.table.region(region.region);
  stored.pages = std::make_unique<Region>();
  stored.node = region.node;
  stored.base = places.base;
  for (std::uint32_t i = 0; i < kRegionPages; ++i) {
    const RegionPlaces::Place& place = places.pages[i];
    if (!place.entry.pack) continue;
    const std::uint32_t page = region.region * kRegionPages + i;
    if ((std::size_t{page} + 1) * kPageBytes > memory_.memory_bytes())
      return damaged(page, "it is outside the memory");
    (*stored.pages)[i].place = place.entry;
    (*stored.pages)[i].depth = place.plain ? 0 : kDepthUnknown;
    ++live_.stored_pages;
    ++live_.unread_pages;
    ++live_.pages_in_pack[place.entry.pack];
    ++live_.unread_in_pack[place.entry.pack];
  }
  return {};
}

/// Regions that have many stored pages, those side by side as one. They are few, as each is a
/// mapping of its own.
std::vector<ByteRange> Restorer::large_parts() const {
  std::vector<ByteRange> parts;
  std::size_t pages = 0;
  for (const auto& [region, stored] : live_.table.regions()) {
    const auto count = static_cast<std::size_t>(
        std::ranges::count_if(*stored.pages, [](const PageState& page) { return page.stored(); }));
    if (count < kLateRegionPagesMin) continue;
    pages += count;
    const std::size_t begin = std::size_t{region} * kRegionBytes;
    const std::size_t end = std::min<std::size_t>(begin + kRegionBytes, memory_.memory_bytes());
    if (!parts.empty() && parts.back().end == begin) parts.back().end = end;
    else parts.push_back({begin, end});
  }
  if (pages < kLatePagesMin) return {};
  const auto shorter = [](const ByteRange& a, const ByteRange& b) {
    return a.end - a.begin < b.end - b.begin;
  };
  while (parts.size() > kLatePartsMax) parts.erase(std::ranges::min_element(parts, shorter));
  return parts;
}

Result<void> Restorer::restore_all_but(const std::vector<ByteRange>& parts) {
  auto part = parts.begin();
  for (const auto& [region, stored] : live_.table.regions()) {
    const std::size_t begin = std::size_t{region} * kRegionBytes;
    while (part != parts.end() && part->end <= begin) ++part;
    if (part != parts.end() && part->begin <= begin) continue;
    for (std::uint32_t i = 0; i < kRegionPages; ++i) {
      if ((*stored.pages)[i].unread()) SW_CHECK_OK(restore_page(region * kRegionPages + i));
    }
  }
  return {};
}

Result<void> Restorer::restore_page(std::uint32_t page) {
  PageState& state = live_.table.at(page);
  PageState read = state;
  Page content = {};
  SW_CHECK_OK(build_page(page, read, content));
  if (state.unread() && (state.depth == 0) != (read.depth == 0))
    return damaged(page, "its entry does not match the page table");
  SW_TRY(const PageSpan room, memory_.write(page));
  copy_page(content, room.data());
  ++pages_written_;
  account(state, read, page);
  return {};
}

/// Notes that a page has been read. It may be asked for again, if it did not get to the memory.
void Restorer::account(PageState& state, const PageState& read, std::uint32_t page) {
  if (!state.unread()) return;
  live_.unread_digest -= digest_share(page, read.hash);
  --live_.unread_pages;
  if (--live_.unread_in_pack[state.place.pack] == 0) live_.unread_in_pack.erase(state.place.pack);
  state = read;
}

Result<void> Restorer::load(std::uint32_t page) {
  if ((std::size_t{page} + 1) * kPageBytes > memory_.memory_bytes())
    return damaged(page, "it is outside the memory");
  const PageState* const state = live_.table.find(page);
  if (state == nullptr || !state->stored()) return load_unstored(page);
  const bool was_unread = live_.unread_pages != 0;
  SW_CHECK_OK(load_with_its_pack(page));
  if (live_.based_on.sequence - live_.table.find(page)->place.pack.sequence <= kChainSpanMax) {
    SW_TRY(const PageSpan written, memory_.write(page));
    live_.recent.put(page, written, live_.table.find(page)->place.pack.sequence);
  }
  if (was_unread && live_.unread_pages == 0 && live_.unread_digest != 0)
    return not_of_this_version();
  return {};
}

/// And the next ones like it, which cost little.
Result<void> Restorer::load_unstored(std::uint32_t page) {
  const auto end = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      {page + kUnstoredPagesAtOnce, (page / kRegionPages + 1) * kRegionPages,
       memory_.memory_bytes() / kPageBytes}));
  for (std::uint32_t next = page; next < end; ++next) {
    const PageState* const state = live_.table.find(next);
    if (state != nullptr && (state->stored() || state->hashed) && next != page) break;
    SW_TRY(const PageSpan room, memory_.write(next));
    copy_page(next < image_.size() / kPageBytes ? page_at(image_, next) : zero_page(), room.data());
  }
  return {};
}

Result<void> Restorer::load_with_its_pack(std::uint32_t page) {
  const PackRef place = live_.table.find(page)->place;
  SW_CHECK_OK(restore_page(page));
  SW_TRY(const auto pack, packs_.pack(place.pack));
  for (const Entry& entry : pack->entries) {
    if (entry.against == Against::kStored) continue;
    const PageState* const other = live_.table.find(entry.page);
    if (other == nullptr || !other->unread() || other->depth != 0 ||
        other->place != PackRef{pack->id, entry.index})
      continue;
    // Damage to a page that nobody asked for is told when somebody does.
    if (!restore_page(entry.page).ok()) break;
  }
  return {};
}

/// Of what was left out, the pages of the newest packs.
Result<void> Restorer::read_ahead() {
  std::vector<std::pair<PackId, std::uint32_t>> newest(live_.unread_in_pack.begin(),
                                                       live_.unread_in_pack.end());
  std::ranges::sort(newest, std::greater<>(), [](const auto& item) { return item.first.sequence; });
  std::set<PackId> chosen;
  std::size_t count = 0;
  for (const auto& [pack, pages] : newest) {
    if ((count += pages) > kReadAheadPagesMax) break;
    chosen.insert(pack);
  }
  if (chosen.empty()) return {};
  for (const auto& [region, stored] : live_.table.regions()) {
    for (std::uint32_t i = 0; i < kRegionPages; ++i) {
      const PageState& state = (*stored.pages)[i];
      if (state.unread() && chosen.contains(state.place.pack))
        SW_CHECK_OK(restore_page(region * kRegionPages + i));
    }
  }
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
      if (state.stored() && !state.unread() &&
          newest_sequence - state.place.pack.sequence <= kChainSpanMax) {
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
