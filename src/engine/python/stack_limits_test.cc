// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/python/stack_limits.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace sw::engine {
namespace {

constexpr std::uint32_t kThread = 0x1000;
constexpr std::uint32_t kTop = 0x1000000;

struct Memory {
  std::vector<std::byte> bytes = std::vector<std::byte>(0x2000);
  wasm::MemoryView view() { return wasm::MemoryView(bytes); }
};

TEST(StackLimits, AreMovedDownBelowTheSameTop) {
  Memory memory;
  const std::array<std::uint32_t, 3> before = {kTop, kTop - 0x1C000, kTop - 0x1E000};
  ASSERT_TRUE(memory.view().store(kThread + 0x310, before));
  ASSERT_TRUE(raise_stack_limits(memory.view(), kThread).ok());
  const auto after = memory.view().load<std::array<std::uint32_t, 3>>(kThread + 0x310).value();
  EXPECT_EQ(after[0], kTop);
  EXPECT_EQ(after[1], kTop - 0x200000);
  EXPECT_LT(after[2], after[1]);
}

TEST(StackLimits, ThatAreNotThereAreAnError) {
  Memory memory;
  EXPECT_EQ(raise_stack_limits(memory.view(), kThread).error().code, ErrorCode::kNotFound);
  // In another order, or a stack that is too small.
  ASSERT_TRUE(memory.view().store(
      kThread + 0x310, std::array<std::uint32_t, 3>{kTop, kTop - 0x1E000, kTop - 0x1C000}));
  EXPECT_FALSE(raise_stack_limits(memory.view(), kThread).ok());
  ASSERT_TRUE(
      memory.view().store(kThread + 0x310, std::array<std::uint32_t, 3>{0x20000, 0x4000, 0x2000}));
  EXPECT_FALSE(raise_stack_limits(memory.view(), kThread).ok());
}

TEST(StackLimits, OutsideOfMemoryAreAnError) {
  Memory memory;
  EXPECT_FALSE(raise_stack_limits(memory.view(), 0x1FF0).ok());
}

}  // namespace
}  // namespace sw::engine
