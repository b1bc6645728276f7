// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasm/instance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "wasm/test_guest.h"

namespace sw::wasm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Instance, CallsWithTypesAndRefusesOtherSignatures) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter);
    const auto get = find<std::int32_t(std::int32_t)>(*guest, "get");
    EXPECT_EQ(guest->instance->call(get, 16).value(), 42);
    EXPECT_EQ(guest->instance->function<void()>("get").error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(guest->instance->function<void()>("absent").error().code, ErrorCode::kNotFound);
  });
}

TEST(Instance, RefusesAThreadWithASmallStack) {
  auto guest = make_guest(kCounter);
  const auto get = find<std::int32_t(std::int32_t)>(*guest, "get");
  EXPECT_THAT(guest->instance->call(get, 16).error().message, HasSubstr("stack is too small"));
}

TEST(Instance, TrapsAreErrorsAndPoison) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter);
    const auto trap = find<void()>(*guest, "trap");
    const auto result = guest->instance->call(trap);
    EXPECT_EQ(result.error().code, ErrorCode::kGuestTrap);
    EXPECT_THAT(result.error().message, HasSubstr("unreachable"));
    EXPECT_EQ(guest->instance->call(trap).error().code, ErrorCode::kInternal);
    EXPECT_TRUE(guest->instance->poisoned());
  });
}

TEST(Instance, OutOfBoundsAccessIsATrap) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter);
    const auto get = find<std::int32_t(std::int32_t)>(*guest, "get");
    EXPECT_EQ(guest->instance->call(get, 2 * 65536).error().code, ErrorCode::kGuestTrap);
  });
}

TEST(Instance, DeepRecursionEndsAsStackOverflowWellPastAHundredThousandFrames) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter);
    const auto deep = find<std::int32_t(std::int32_t)>(*guest, "deep");
    EXPECT_EQ(guest->instance->call(deep, 1'000'000).value(), 1'000'000);
    EXPECT_EQ(guest->instance->call(deep, 1'000'000'000).error().code,
              ErrorCode::kGuestStackOverflow);
  });
}

TEST(Instance, GrowthPastTheLimitIsRefusedNotFatal) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter, {.memory_bytes_max = 4 * 65536});
    const auto grow = find<std::int32_t(std::int32_t)>(*guest, "grow");
    EXPECT_EQ(guest->instance->call(grow, 2).value(), 2);
    EXPECT_EQ(guest->instance->call(grow, 1).value(), -1);
    EXPECT_EQ(guest->instance->refused_growths(), 1u);
    EXPECT_FALSE(guest->instance->poisoned());
    EXPECT_EQ(guest->instance->memory().size(), 4u * 65536);
  });
}

TEST(Instance, HostMemoryCountsAgainstTheLimitUntilItsScopeEnds) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter, {.memory_bytes_max = 4 * 65536});  // of which it has two
    constexpr std::uint64_t kFree = 1 << 20;
    const auto grow = find<std::int32_t(std::int32_t)>(*guest, "grow");
    {
      const HostMemoryScope scope(*guest->instance);
      ASSERT_TRUE(guest->instance->charge(kFree).ok());
      ASSERT_TRUE(guest->instance->charge(65536).ok());
      {
        const HostMemoryScope inner(*guest->instance);
        ASSERT_TRUE(guest->instance->charge(65536).ok());
        EXPECT_EQ(guest->instance->charge(1).error().code, ErrorCode::kLimitExceeded);
        EXPECT_EQ(guest->instance->charge(UINT64_MAX).error().code, ErrorCode::kLimitExceeded);
        EXPECT_EQ(guest->instance->call(grow, 1).value(), -1);
        EXPECT_EQ(guest->instance->refused_growths(), 3u);
      }
      EXPECT_EQ(guest->instance->call(grow, 2).value(), -1);
      EXPECT_EQ(guest->instance->call(grow, 1).value(), 2);
    }
    EXPECT_EQ(guest->instance->call(grow, 1).value(), 3);
    // A limit that is set lower than what there is leaves no room.
    guest->instance->set_memory_bytes_max(65536);
    EXPECT_TRUE(guest->instance->charge(kFree).ok());
    EXPECT_EQ(guest->instance->charge(1).error().code, ErrorCode::kLimitExceeded);
  });
}

TEST(Instance, HostGrowsMemoryTheGuestsWay) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter);
    ASSERT_TRUE(guest->instance->grow_memory_to(3 * 65536 + 1).ok());
    EXPECT_EQ(guest->instance->memory().size(), 4u * 65536);
    const auto set = find<void(std::int32_t, std::int32_t)>(*guest, "set");
    EXPECT_TRUE(guest->instance->call(set, 4 * 65536 - 4, 1).ok());
  });
}

// Exceptions allocate in the GC heap, whose memory is not the module's own.
TEST(Instance, ExceptionsWorkInAKeptInstance) {
  on_guest_thread([] {
    auto guest = make_guest(R"((module (memory (export "memory") 1) (tag $t (param i32))
        (func $throw (param i32) (throw $t (local.get 0)))
        (func (export "f") (param i32) (result i32)
          (block $caught (result i32) (try_table (catch $t $caught) (call $throw (local.get 0))) (i32.const -1)))))",
                            {.with_image = true});
    const auto f = find<std::int32_t(std::int32_t)>(*guest, "f");
    for (int i = 0; i < 1000; ++i) {
      ASSERT_EQ(guest->instance->call(f, i).value(), i);
      ASSERT_EQ(guest->instance->reset().verdict, KeepVerdict::kKept);
    }
  });
}

TEST(Reset, PutsMemoryBackAndKeepsTheInstance) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter, {.with_image = true});
    const auto get = find<std::int32_t(std::int32_t)>(*guest, "get");
    const auto set = find<void(std::int32_t, std::int32_t)>(*guest, "set");
    for (int round = 0; round < 3; ++round) {
      EXPECT_EQ(guest->instance->call(get, 16).value(), 42);
      ASSERT_TRUE(guest->instance->call(set, 16, 7).ok());
      ASSERT_TRUE(guest->instance->call(set, 70000, 7).ok());
      const ResetStats stats = guest->instance->reset();
      EXPECT_EQ(stats.verdict, KeepVerdict::kKept);
      EXPECT_EQ(stats.pages_put_back, 2u);
      EXPECT_EQ(guest->instance->call(get, 70000).value(), 0);
    }
  });
}

TEST(Reset, DropsAnInstanceWhoseMemoryGrew) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter, {.with_image = true});
    ASSERT_EQ(guest->instance->call(find<std::int32_t(std::int32_t)>(*guest, "grow"), 1).value(),
              2);
    ASSERT_TRUE(
        guest->instance->call(find<void(std::int32_t, std::int32_t)>(*guest, "set"), 2 * 65536, 5)
            .ok());
    EXPECT_EQ(guest->instance->reset().verdict, KeepVerdict::kMemoryGrew);
    // The slot itself is used again, at its size at rest and clean.
    guest->instance.reset();
    guest->instance = guest->pre->instantiate(guest->host, {}).value();
    EXPECT_EQ(guest->instance->memory().size(), 2u * 65536);
    ASSERT_EQ(guest->instance->call(find<std::int32_t(std::int32_t)>(*guest, "grow"), 1).value(),
              2);
    EXPECT_EQ(
        guest->instance->call(find<std::int32_t(std::int32_t)>(*guest, "get"), 2 * 65536).value(),
        0);
  });
}

TEST(Reset, DropsAnInstanceWithAChangedGlobal) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter, {.with_image = true});
    const auto set_global = find<void(std::int32_t)>(*guest, "set_global");
    ASSERT_TRUE(guest->instance->call(set_global, 1).ok());
    EXPECT_THAT(guest->instance->reason_not_at_rest(), HasSubstr("global"));
    EXPECT_EQ(guest->instance->reset().verdict, KeepVerdict::kGlobalChanged);
    ASSERT_TRUE(guest->instance->call(set_global, 4096).ok());
    EXPECT_EQ(guest->instance->reset().verdict, KeepVerdict::kKept);
  });
}

TEST(Reset, DropsAnInstanceThatTrapped) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter, {.with_image = true});
    EXPECT_FALSE(guest->instance->call(find<void()>(*guest, "trap")).ok());
    EXPECT_EQ(guest->instance->reset().verdict, KeepVerdict::kEndedAbnormally);
  });
}

TEST(Reset, DropsAnInstanceOfAModuleThatWritesTables) {
  on_guest_thread([] {
    auto guest = make_guest(
        R"((module (memory (export "memory") 1) (table 1 funcref)
             (func (export "f") (table.set (i32.const 0) (ref.null func)))))",
        {.with_image = true});
    ASSERT_TRUE(guest->instance->call(find<void()>(*guest, "f")).ok());
    EXPECT_EQ(guest->instance->reset().verdict, KeepVerdict::kNotKeepable);
  });
}

TEST(Reset, AManyPageRunIsPutBackToo) {
  on_guest_thread([] {
    auto guest = make_guest(R"((module (memory (export "memory") 64)
        (func (export "fill") (memory.fill (i32.const 0) (i32.const 255) (i32.const 4194304)))
        (func (export "get") (param i32) (result i32) (i32.load (local.get 0)))))",
                            {.with_image = true});
    ASSERT_TRUE(guest->instance->call(find<void()>(*guest, "fill")).ok());
    const ResetStats stats = guest->instance->reset();
    EXPECT_EQ(stats.verdict, KeepVerdict::kKept);
    EXPECT_EQ(stats.pages_put_back, 1024u);
    EXPECT_EQ(
        guest->instance->call(find<std::int32_t(std::int32_t)>(*guest, "get"), 4194300).value(), 0);
  });
}

TEST(Reset, ATinyRunAfterALargeOneTouchesAsFewPagesAsBefore) {
  on_guest_thread([] {
    auto guest = make_guest(R"((module (memory (export "memory") 128)
        (func (export "fill") (memory.fill (i32.const 65536) (i32.const 255) (i32.const 4194304)))
        (func (export "tiny") (i32.store (i32.const 0) (i32.const 1)))))",
                            {.with_image = true});
    const auto tiny = find<void()>(*guest, "tiny");
    const auto touched = [&] {
      EXPECT_TRUE(guest->instance->call(tiny).ok());
      std::vector<ByteRange> ranges;
      EXPECT_TRUE(guest->instance->take_changed_pages(ranges).ok());
      EXPECT_EQ(guest->instance->reset().verdict, KeepVerdict::kKept);
      std::size_t pages = 0;
      for (const ByteRange& range : ranges) pages += (range.end - range.begin) / kPageBytes;
      return pages;
    };
    EXPECT_EQ(touched(), 1u);
    ASSERT_TRUE(guest->instance->call(find<void()>(*guest, "fill")).ok());
    ASSERT_EQ(guest->instance->reset().verdict, KeepVerdict::kKept);
    EXPECT_EQ(touched(), 1u);
  });
}

TEST(Reset, PagesThatNoRunChangesAnyMoreAreGivenBackInTheEnd) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter, {.with_image = true});
    const auto set = find<void(std::int32_t, std::int32_t)>(*guest, "set");
    std::vector<ByteRange> ranges;
    ASSERT_TRUE(guest->instance->call(set, 70000, 7).ok());
    for (int round = 0; round < 250; ++round) {
      ASSERT_EQ(guest->instance->reset().verdict, KeepVerdict::kKept);
      ASSERT_TRUE(guest->instance->call(set, 16, round).ok());
    }
    ASSERT_TRUE(guest->instance->take_changed_pages(ranges).ok());
    EXPECT_THAT(ranges, ElementsAre(ByteRange{0, kPageBytes}));
  });
}

}  // namespace
}  // namespace sw::wasm
