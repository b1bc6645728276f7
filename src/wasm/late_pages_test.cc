// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasm/late_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <set>
#include <thread>

#include "wasm/test_guest.h"

namespace sw::wasm {
namespace {

using ::testing::HasSubstr;

using Get = std::int32_t(std::int32_t);

// Pages of the memory and of its first and last part that are left out: kCounter has 32, and grows.
constexpr std::uint32_t kPages = 64;
constexpr std::uint32_t kLateInImage = 8;
constexpr std::uint32_t kEarly = 16;
constexpr std::uint32_t kLateBeyond = 40;

std::int32_t stored_value(std::uint32_t page) { return static_cast<std::int32_t>(page * 1000 + 7); }

constexpr std::int32_t address_of(std::uint32_t page) {
  return static_cast<std::int32_t>(page * kPageBytes);
}

/// Writes pages that say their number, and notes which were asked for.
struct Supplier {
  std::atomic<int> asked = 0;
  std::atomic<std::uint32_t> damaged_page = UINT32_MAX;
  std::atomic<int> damage_told = 0;

  PageSupply supply() {
    return [this](std::uint32_t page, PageSink& memory) -> Result<void> {
      ++asked;
      if (page == damaged_page) return Error{ErrorCode::kCorrupt, "page is damaged"};
      SW_TRY(const PageSpan room, memory.write(page));
      write(page, room);
      return {};
    };
  }
  static void write(std::uint32_t page, PageSpan room) {
    std::ranges::fill(room, std::byte{0});
    const std::int32_t value = stored_value(page);
    std::memcpy(room.data(), &value, sizeof value);
  }
};

class LatePagesTest : public ::testing::TestWithParam<StopMeans> {
 protected:
  /// False where the kernel does not offer it.
  static bool is_offered() { return FaultService::create().ok(); }

  std::unique_ptr<Guest> restored(Supplier& supplier, wasm::Setup setup = {}) {
    setup.with_image = true;
    setup.stop_means = GetParam();
    auto guest = make_guest(kCode, setup);
    EXPECT_TRUE(guest->instance->grow_memory_to(kPages * kPageBytes).ok());
    leave_out(*guest->instance, supplier);
    return guest;
  }
  void leave_out(Instance& instance, Supplier& supplier) {
    const std::vector<ByteRange> parts = {{kLateInImage * kPageBytes, kEarly * kPageBytes},
                                          {kLateBeyond * kPageBytes, kPages * kPageBytes}};
    ASSERT_TRUE(instance.leave_out_pages(parts).ok());
    for (const std::uint32_t page : {kEarly, kLateBeyond + 1})
      Supplier::write(page, *instance.room_for(page));
    ASSERT_TRUE(
        instance.supply_pages(supplier.supply(), [&supplier] { ++supplier.damage_told; }).ok());
  }

  static constexpr std::string_view kCode = R"((module
    (import "t" "look" (func $look (param i32) (result i32)))
    (import "t" "effect" (func $effect))
    (memory (export "memory") 2)
    (data (i32.const 16) "\2a\00\00\00")
    (func (export "get") (param i32) (result i32) (i32.load (local.get 0)))
    (func (export "set") (param i32 i32) (i32.store (local.get 0) (local.get 1)))
    (func (export "get_by_host") (param i32) (result i32)
      (local $seen i32)
      (local.set $seen (call $look (local.get 0)))
      (call $effect)
      (local.get $seen))
    (func (export "copy") (param i32 i32) (result i32)
      (memory.copy (local.get 1) (local.get 0) (i32.const 16))
      (call $effect)
      (i32.load (local.get 1)))))";

  wasm::Setup setup_ = {.define = [this](Linker& linker) {
    ASSERT_TRUE(linker
                    .define("t", "look",
                            [](Caller& caller, std::uint32_t address) {
                              return *caller.memory().load<std::int32_t>(address);
                            })
                    .ok());
    ASSERT_TRUE(linker.define("t", "effect", [this](Caller&) { ++effects_; }).ok());
  }};
  std::atomic<int> effects_ = 0;
};

#define SW_NEEDS_USERFAULTFD() \
  if (!is_offered()) GTEST_SKIP() << "this kernel does not offer userfaultfd to us"

TEST_P(LatePagesTest, AreSuppliedToWhoeverTouchesThemFirst) {
  SW_NEEDS_USERFAULTFD();
  on_guest_thread([&] {
    Supplier supplier;
    auto guest = restored(supplier, setup_);
    const auto get = find<Get>(*guest, "get");
    const auto by_host = find<Get>(*guest, "get_by_host");
    EXPECT_EQ(guest->instance->call(get, 16).value(), 42);
    EXPECT_EQ(guest->instance->call(get, address_of(kEarly)).value(), stored_value(kEarly));
    EXPECT_EQ(guest->instance->call(get, address_of(kLateBeyond + 1)).value(),
              stored_value(kLateBeyond + 1));
    EXPECT_EQ(supplier.asked, 0);
    for (std::uint32_t page = kLateInImage; page < kPages; ++page) {
      if (page >= kEarly && page < kLateBeyond) continue;
      const auto& look = page % 2 == 0 ? get : by_host;
      EXPECT_EQ(guest->instance->call(look, address_of(page)).value(), stored_value(page));
    }
    EXPECT_EQ(supplier.asked, kEarly - kLateInImage + kPages - kLateBeyond - 1);
    // And from outside of a call.
    EXPECT_EQ(guest->instance->memory().load<std::int32_t>(address_of(kPages - 1)),
              stored_value(kPages - 1));
  });
}

TEST_P(LatePagesTest, AreKeptOnceTheyAreThere) {
  SW_NEEDS_USERFAULTFD();
  on_guest_thread([&] {
    Supplier supplier;
    auto guest = restored(supplier, setup_);
    const auto set = find<void(std::int32_t, std::int32_t)>(*guest, "set");
    ASSERT_TRUE(guest->instance->call(set, address_of(kLateBeyond), 5).ok());
    ASSERT_TRUE(guest->instance->call(set, address_of(kLateBeyond) + 4, 6).ok());
    EXPECT_EQ(guest->instance->memory().load<std::int32_t>(address_of(kLateBeyond)), 5);
    EXPECT_EQ(supplier.asked, 1);
  });
}

TEST_P(LatePagesTest, AreDirtyOnlyWhenSupplied) {
  SW_NEEDS_USERFAULTFD();
  on_guest_thread([&] {
    Supplier supplier;
    auto guest = restored(supplier, setup_);
    ASSERT_TRUE(guest->instance->call(find<Get>(*guest, "get"), address_of(50)).ok());
    std::vector<ByteRange> dirty;
    ASSERT_TRUE(guest->instance->take_changed_pages(dirty).ok());
    std::set<std::size_t> pages;
    for (const ByteRange& range : dirty) {
      for (std::size_t at = range.begin; at < range.end; at += kPageBytes)
        pages.insert(at / kPageBytes);
    }
    EXPECT_TRUE(pages.contains(50));
    for (std::uint32_t page = kLateInImage; page < kPages; ++page) {
      if (page == 50 || page == kEarly || page == kLateBeyond + 1) continue;
      EXPECT_FALSE(pages.contains(page)) << page;
    }
    EXPECT_EQ(supplier.asked, 1);
  });
}

TEST_P(LatePagesTest, DamageEndsTheCallWithItsError) {
  SW_NEEDS_USERFAULTFD();
  on_guest_thread([&] {
    for (const char* how : {"get", "get_by_host", "copy"}) {
      SCOPED_TRACE(how);
      Supplier supplier;
      auto guest = restored(supplier, setup_);
      effects_ = 0;
      supplier.damaged_page = 50;
      const auto call = [&](std::uint32_t page) -> Result<std::int32_t> {
        if (how == std::string_view("copy")) {
          const auto copy = find<std::int32_t(std::int32_t, std::int32_t)>(*guest, how);
          return guest->instance->call(copy, address_of(page), address_of(page + 1));
        }
        return guest->instance->call(find<Get>(*guest, how), address_of(page));
      };
      EXPECT_EQ(call(51).value(), stored_value(51));
      const int effects_before = effects_;
      const auto ended = call(50);
      ASSERT_FALSE(ended.ok());
      EXPECT_EQ(ended.error().code, ErrorCode::kCorrupt);
      EXPECT_THAT(ended.error().message, HasSubstr("page is damaged"));
      EXPECT_EQ(effects_, effects_before);  // nothing goes out
      EXPECT_EQ(supplier.damage_told, 1);
      EXPECT_TRUE(guest->instance->poisoned());
      EXPECT_EQ(call(51).error().code, ErrorCode::kCorrupt);
    }
  });
}

TEST_P(LatePagesTest, DamageFoundBetweenCallsFailsTheNext) {
  SW_NEEDS_USERFAULTFD();
  on_guest_thread([&] {
    Supplier supplier;
    auto guest = restored(supplier, setup_);
    supplier.damaged_page = 50;
    EXPECT_EQ(guest->instance->memory().load<std::int32_t>(address_of(50)), 0);
    ASSERT_TRUE(guest->instance->damage());
    EXPECT_EQ(guest->instance->call(find<Get>(*guest, "get"), 16).error().code,
              ErrorCode::kCorrupt);
  });
}

TEST_P(LatePagesTest, DamageFoundWhileTheRunIsWatchedEndsIt) {
  SW_NEEDS_USERFAULTFD();
  on_guest_thread([&] {
    Supplier supplier;
    supplier.damaged_page = 50;
    wasm::Setup setup = setup_;
    Guest* running = nullptr;
    setup.define = [&](Linker& linker) {
      setup_.define(linker);
      ASSERT_TRUE(linker
                      .define("u", "watch",
                              [&](Caller&) {
                                std::thread([&] {
                                  running->instance->while_running([](MemoryView memory) {
                                    EXPECT_EQ(memory.load<std::int32_t>(address_of(50)), 0);
                                  });
                                }).join();
                              })
                      .ok());
    };
    setup.with_image = true;
    setup.stop_means = GetParam();
    auto guest = make_guest(R"((module (import "u" "watch" (func $watch))
      (memory (export "memory") 2) (func (export "run") (call $watch))))",
                            setup);
    running = guest.get();
    ASSERT_TRUE(guest->instance->grow_memory_to(kPages * kPageBytes).ok());
    leave_out(*guest->instance, supplier);
    EXPECT_EQ(guest->instance->call(find<void()>(*guest, "run")).error().code, ErrorCode::kCorrupt);
  });
}

TEST_P(LatePagesTest, TheNextInstanceHasTheImage) {
  SW_NEEDS_USERFAULTFD();
  on_guest_thread([&] {
    Supplier supplier;
    auto guest = restored(supplier, setup_);
    ASSERT_TRUE(guest->instance->call(find<Get>(*guest, "get"), address_of(kLateInImage)).ok());
    const std::byte* const base = guest->instance->memory().bytes().data();
    guest->instance.reset();
    guest->instance = guest->pre->instantiate(guest->host, {}).value();
    ASSERT_EQ(guest->instance->memory().bytes().data(), base);
    ASSERT_TRUE(guest->instance->grow_memory_to(kPages * kPageBytes).ok());
    const auto get = find<Get>(*guest, "get");
    for (std::uint32_t page = 0; page < kPages; ++page)
      EXPECT_EQ(guest->instance->call(get, address_of(page)).value(), 0);
    EXPECT_EQ(guest->instance->call(get, 16).value(), 42);
    EXPECT_EQ(supplier.asked, 1);
  });
}

TEST_P(LatePagesTest, OfManyMemoriesComeToTheRightOne) {
  SW_NEEDS_USERFAULTFD();
  constexpr int kGuests = 4;
  std::vector<std::thread> threads;
  for (int i = 0; i < kGuests; ++i) {
    threads.emplace_back([&] {
      on_guest_thread([&] {
        for (int round = 0; round < 20; ++round) {
          Supplier supplier;
          auto guest = restored(supplier, setup_);
          const auto get = find<Get>(*guest, "get");
          for (std::uint32_t page = kLateBeyond; page < kPages; ++page)
            EXPECT_EQ(guest->instance->call(get, address_of(page)).value(), stored_value(page));
        }
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(All, LatePagesTest,
                         ::testing::Values(StopMeans::kFault, StopMeans::kEpoch),
                         [](const auto& means) {
                           return means.param == StopMeans::kFault ? "Fault" : "Epoch";
                         });

TEST(LatePages, AreRefusedWhereTheRuntimeHasNone) {
  const auto runtime = Runtime::create({.late_pages = false}).value();
  const PreparedModule prepared = prepare_module(wat_to_wasm(kCounter).value()).value();
  const Module module = Module::compile(*runtime, prepared.wasm).value();
  const Linker linker(*runtime);
  const auto pre = InstancePre::create(*runtime, linker, module, prepared.facts, nullptr).value();
  HostState host;
  const auto instance = pre->instantiate(host, {}).value();
  const std::vector<ByteRange> parts = {{0, kPageBytes}};
  EXPECT_EQ(instance->leave_out_pages(parts).error().code, ErrorCode::kUnavailable);
  EXPECT_NE(instance->room_for(0)->data(), nullptr);
}

}  // namespace
}  // namespace sw::wasm
