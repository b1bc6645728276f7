// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/base/byte_range.h"

#include <algorithm>
#include <iterator>

namespace sw {

void add_ranges(std::vector<ByteRange>& ranges, std::span<const ByteRange> more) {
  std::vector<ByteRange> all;
  std::ranges::merge(ranges, more, std::back_inserter(all), {}, &ByteRange::begin,
                     &ByteRange::begin);
  ranges.clear();
  for (const ByteRange& range : all) {
    if (ranges.empty() || ranges.back().end < range.begin) ranges.push_back(range);
    else ranges.back().end = std::max(ranges.back().end, range.end);
  }
}

}  // namespace sw
