// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/layer_merge.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace sw::storage {
namespace {

constexpr std::uint64_t kMegabyte = 1 << 20;
using Sizes = std::vector<std::uint64_t>;

TEST(LayersToMerge, NoneOfAShallowStack) {
  EXPECT_EQ(layers_to_merge(1, {}), 0U);
  EXPECT_EQ(layers_to_merge(kShallowStack, Sizes(kShallowStack - 1, 1)), 0U);
}

TEST(LayersToMerge, ThoseThatAreNotMuchLargerThanWhatIsAboveThem) {
  EXPECT_EQ(layers_to_merge(9, Sizes(8, 1)), 8U);
  EXPECT_EQ(layers_to_merge(10, {0, 0, 0, 0, 0, 0, 0, 10 * kMegabyte, 0}), 7U);
  EXPECT_EQ(layers_to_merge(10, {kMegabyte, 2 * kMegabyte, 6 * kMegabyte, 18 * kMegabyte + 1, 1}),
            3U);
  EXPECT_EQ(layers_to_merge(10, {kMegabyte, 0, 0, 0, 0, 0, 0, 0, 0}), 9U);
  // One alone is as it was.
  EXPECT_EQ(layers_to_merge(10, {kMegabyte, 3 * kMegabyte, 0, 0, 0, 0, 0, 0, 0}), 0U);
  EXPECT_EQ(layers_to_merge(10, {kMegabyte}), 0U);  // the next is damaged
}

TEST(LayersToMerge, EnoughOfADeepStackWhateverTheirSizes) {
  Sizes sizes(kDeepStack + 3, 1);
  sizes[1] = 100 * kMegabyte;
  EXPECT_EQ(layers_to_merge(kDeepStack + 4, sizes), kDeepStack / 2 + 4);
}

/// A layer for each checkpoint, of any size from bytes to gigabytes.
TEST(LayersToMerge, KeepsStacksShallowAndRewritesLittle) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (unsigned round = 0; round < 20; ++round) {
    Sizes below;  // the topmost, to which the next changes go, is not among them
    double written = 0;
    double rewritten = 0;
    for (unsigned i = 0; i < 10'000; ++i) {
      const std::uint64_t size =
          std::max<std::uint64_t>(random() % 16 << random() % (round + 8), 8 << 10);
      written += static_cast<double>(size);
      below.insert(below.begin(), size);
      const std::size_t count = layers_to_merge(below.size() + 1, below);
      const auto end = below.begin() + static_cast<std::ptrdiff_t>(count);
      const std::uint64_t sum = std::accumulate(below.begin(), end, std::uint64_t{0});
      if (count == 0) continue;
      rewritten += static_cast<double>(sum);
      below.erase(below.begin(), end);
      below.insert(below.begin(), sum);
      ASSERT_LE(below.size() + 1, kDeepStack);
    }
    EXPECT_LT(rewritten / written, 12);
  }
}

}  // namespace
}  // namespace sw::storage
