// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/python/interrupt.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string_view>
#include <vector>

namespace sw::engine {
namespace {

// A memory laid out like CPython's: the runtime with its table at 0x100, an interpreter at 0x1000,
// its thread at 0x2000.
class FakePython {
 public:
  FakePython() : bytes_(0x4000) {
    std::memcpy(bytes_.data() + kRuntime, "xdebugpy", 8);
    table(0, 0x030f00f0);
    table(4, 0x300);
    table(8, 0x40);
    table(24, 8);
    table(29, 0x6c);
    word(kRuntime + 0x300, 0x1000);
    word(0x1040, 0x2000);
    word(0x2008, 0x1000);
  }
  void table(std::uint32_t number, std::uint64_t value) {
    std::memcpy(bytes_.data() + kRuntime + 8 + 8 * number, &value, sizeof value);
  }
  void word(std::uint32_t address, std::uint32_t value) {
    std::memcpy(bytes_.data() + address, &value, sizeof value);
  }
  std::uint32_t word(std::uint32_t address) const {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes_.data() + address, sizeof value);
    return value;
  }
  wasm::MemoryView memory() { return wasm::MemoryView(bytes_); }

  static constexpr std::uint32_t kRuntime = 0x100;
  static constexpr std::uint32_t kBreaker = 0x200C;
  static constexpr std::uint32_t kAsyncExc = 0x2068;

 private:
  std::vector<std::byte> bytes_;
};

TEST(Interrupt, SetsTheExceptionAndTheBit) {
  FakePython python;
  python.word(FakePython::kBreaker, 0x40);
  Interrupt interrupt = Interrupt::find(python.memory()).value();
  interrupt.set_exception(0xABC0);
  interrupt.request(python.memory());
  EXPECT_EQ(python.word(FakePython::kAsyncExc), 0xABC0U);
  EXPECT_EQ(python.word(FakePython::kBreaker), 0x48U);
}

TEST(Interrupt, IsTakenBackWithoutTouchingOtherBits) {
  FakePython python;
  python.word(FakePython::kBreaker, 0x48);
  python.word(FakePython::kAsyncExc, 0xABC0);
  const Interrupt interrupt = Interrupt::find(python.memory()).value();
  ASSERT_TRUE(interrupt.withdraw(python.memory()).ok());
  EXPECT_EQ(python.word(FakePython::kAsyncExc), 0U);
  EXPECT_EQ(python.word(FakePython::kBreaker), 0x40U);
}

TEST(Interrupt, ComesThroughTheFactsOfABake) {
  FakePython python;
  Interrupt found = Interrupt::find(python.memory()).value();
  found.set_exception(0xABC0);
  BakeFacts facts;
  found.save(facts);
  Interrupt::load(facts).value().request(python.memory());
  EXPECT_EQ(python.word(FakePython::kAsyncExc), 0xABC0U);
}

TEST(Interrupt, RefusesAnotherVersionOfCPython) {
  FakePython python;
  python.table(0, 0x031000f0);
  EXPECT_EQ(Interrupt::find(python.memory()).error().code, ErrorCode::kInvalidArgument);
}

TEST(Interrupt, RefusesStructuresThatLeadNowhere) {
  FakePython python;
  python.word(FakePython::kRuntime + 0x300, 0xFFFFFFF0);
  EXPECT_EQ(Interrupt::find(python.memory()).error().code, ErrorCode::kCorrupt);
  FakePython other;
  other.word(0x2008, 0x1234);
  EXPECT_EQ(Interrupt::find(other.memory()).error().code, ErrorCode::kCorrupt);
}

TEST(Interrupt, NeedsTheTable) {
  std::vector<std::byte> empty(0x4000);
  EXPECT_EQ(Interrupt::find(wasm::MemoryView(empty)).error().code, ErrorCode::kNotFound);
}

TEST(Interrupt, NeedsAllItsFacts) {
  EXPECT_EQ(Interrupt::load({{"eval_breaker", 1}}).error().code, ErrorCode::kCorrupt);
}

TEST(Interrupt, RefusesFactsThatAreNoAddressesOfWords) {
  const BakeFacts good = {{"eval_breaker", 12}, {"async_exc", 16}, {"keyboard_interrupt", 64}};
  EXPECT_TRUE(Interrupt::load(good).ok());
  for (const char* name : {"eval_breaker", "async_exc"}) {
    BakeFacts facts = good;
    facts[name] += 1;
    EXPECT_EQ(Interrupt::load(facts).error().code, ErrorCode::kCorrupt) << name;
    facts[name] = (std::uint64_t{1} << 32U) + 12;
    EXPECT_EQ(Interrupt::load(facts).error().code, ErrorCode::kCorrupt) << name;
  }
}

TEST(Interrupt, OutsideOfMemoryIsAnErrorAndNoWrite) {
  const Interrupt interrupt =
      Interrupt::load({{"eval_breaker", 0xFFFFFFFC}, {"async_exc", 8}, {"keyboard_interrupt", 1}})
          .value();
  std::vector<std::byte> memory(64);
  interrupt.request(wasm::MemoryView(memory));
  EXPECT_FALSE(interrupt.withdraw(wasm::MemoryView(memory)).ok());
  EXPECT_EQ(memory[8], std::byte{0});
}

}  // namespace
}  // namespace sw::engine
