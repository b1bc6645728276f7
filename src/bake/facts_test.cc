// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/bake/facts.h"

#include <gtest/gtest.h>

namespace sw::bake {
namespace {

TEST(BakeFacts, AreReadAsNumbersOfTheWantedSize) {
  const BakeFacts facts = {{"here", 0xFFFF'FFFF}, {"far", std::uint64_t{1} << 32}};
  EXPECT_EQ(fact<std::uint32_t>(facts, "here").value(), 0xFFFF'FFFF);
  EXPECT_EQ(fact<std::uint64_t>(facts, "far").value(), std::uint64_t{1} << 32);
}

TEST(BakeFacts, AMissingOneOrOneThatIsTooLargeIsDamage) {
  const BakeFacts facts = {{"far", std::uint64_t{1} << 32}};
  EXPECT_EQ(fact<std::uint32_t>(facts, "far").error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(fact<std::uint32_t>(facts, "nowhere").error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace sw::bake
