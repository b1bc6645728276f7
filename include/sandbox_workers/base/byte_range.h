// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sw {

/// Bytes [begin, end) of a memory.
struct ByteRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool operator==(const ByteRange&) const = default;
};

/// Adds `more` to `ranges`. Both ascend, and so does the result; ranges that touch are joined.
void add_ranges(std::vector<ByteRange>& ranges, std::span<const ByteRange> more);

}  // namespace sw
