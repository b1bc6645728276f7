// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/page_table.h"

namespace sw::snapshot {

namespace {

bool extends(const PageRun& run, std::uint32_t page, const PageState& state) {
  return page == std::uint32_t{run.page_in_region} + run.length &&
         state.place.pack == run.first.pack && state.place.index == run.first.index + run.length &&
         run.plain == (state.depth == 0);
}

}  // namespace

std::vector<PageRun> runs_of(const Region& region, std::uint32_t sequence) {
  std::vector<PageRun> runs;
  for (std::uint32_t page = 0; page < kRegionPages; ++page) {
    const PageState& state = region[page];
    if (state.place.pack.sequence <= sequence) continue;
    if (!runs.empty() && extends(runs.back(), page, state)) ++runs.back().length;
    else runs.push_back({static_cast<std::uint16_t>(page), 1, state.place, state.depth == 0});
  }
  return runs;
}

std::uint64_t digest_share(std::uint32_t page, std::uint64_t hash) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;
  constexpr std::uint64_t kMix = 0xd6e8feb86659fd93U;
  std::uint64_t share = (hash ^ ((page + 1) * kGolden)) * kMix;
  share ^= share >> 32U;
  return share * kMix;
}

const PageState* PageTable::find(std::uint32_t page) const {
  const auto stored = regions_.find(page / kRegionPages);
  return stored == regions_.end() ? nullptr : &(*stored->second.pages)[page % kRegionPages];
}

PageState& PageTable::at(std::uint32_t page) {
  StoredRegion& stored = regions_[page / kRegionPages];
  if (!stored.pages) stored.pages = std::make_unique<Region>();
  return (*stored.pages)[page % kRegionPages];
}

}  // namespace sw::snapshot
