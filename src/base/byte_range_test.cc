// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/base/byte_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sw {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<ByteRange> sum(std::vector<ByteRange> ranges, const std::vector<ByteRange>& more) {
  add_ranges(ranges, more);
  return ranges;
}

TEST(ByteRange, AddedRangesAscendAndAreJoined) {
  EXPECT_THAT(sum({}, {}), IsEmpty());
  EXPECT_THAT(sum({{2, 4}}, {}), ElementsAre(ByteRange{2, 4}));
  EXPECT_THAT(sum({}, {{2, 4}}), ElementsAre(ByteRange{2, 4}));
  EXPECT_THAT(sum({{2, 4}, {9, 10}}, {{0, 1}, {5, 6}, {12, 13}}),
              ElementsAre(ByteRange{0, 1}, ByteRange{2, 4}, ByteRange{5, 6}, ByteRange{9, 10},
                          ByteRange{12, 13}));
  EXPECT_THAT(sum({{2, 4}, {6, 8}}, {{4, 6}}), ElementsAre(ByteRange{2, 8}));
  EXPECT_THAT(sum({{2, 9}, {20, 21}}, {{3, 4}, {8, 12}}),
              ElementsAre(ByteRange{2, 12}, ByteRange{20, 21}));
}

}  // namespace
}  // namespace sw
