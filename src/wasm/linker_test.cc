// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasm/linker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "wasm/test_guest.h"

namespace sw::wasm {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kHostCaller = R"((module
  (import "env" "f" (func $f (param i32 i64 f64) (result i64)))
  (memory (export "memory") 1)
  (func (export "run") (result i64) (call $f (i32.const -1) (i64.const 7) (f64.const 0.5)))))";

TEST(Linker, PassesValuesAndReachesMemoryAndState) {
  on_guest_thread([] {
    auto guest = make_guest(
        kHostCaller, {.define = [](Linker& linker) {
          ASSERT_TRUE(linker
                          .define("env", "f",
                                  [](Caller& caller, std::uint32_t a, std::int64_t b, double c) {
                                    EXPECT_EQ(a, 0xFFFFFFFFu);
                                    EXPECT_EQ(c, 0.5);
                                    EXPECT_TRUE(caller.memory().store<std::uint32_t>(0, 99));
                                    EXPECT_FALSE(caller.memory().store<std::uint32_t>(65533, 99));
                                    EXPECT_FALSE(caller.memory().range(a, 2).has_value());
                                    return b * 6;
                                  })
                          .ok());
        }});
    EXPECT_EQ(guest->instance->call(find<std::int64_t()>(*guest, "run")).value(), 42);
    EXPECT_EQ(guest->instance->memory().load<std::uint32_t>(0), 99u);
  });
}

TEST(Linker, AnErrorOfAHostFunctionEndsTheRunWithThatError) {
  on_guest_thread([] {
    auto guest = make_guest(
        kHostCaller, {.define = [](Linker& linker) {
          ASSERT_TRUE(
              linker
                  .define("env", "f",
                          [](Caller&, std::int32_t, std::int64_t, double) -> Result<std::int64_t> {
                            return Error{ErrorCode::kGuestExit, "exit", 3};
                          })
                  .ok());
        }});
    const auto result = guest->instance->call(find<std::int64_t()>(*guest, "run"));
    EXPECT_EQ(result.error().code, ErrorCode::kGuestExit);
    EXPECT_EQ(result.error().exit_code, 3);
  });
}

TEST(Linker, AnExceptionOfAHostFunctionDoesNotCrossTheGuest) {
  on_guest_thread([] {
    auto guest = make_guest(
        kHostCaller, {.define = [](Linker& linker) {
          ASSERT_TRUE(linker
                          .define("env", "f",
                                  [](Caller&, std::int32_t, std::int64_t, double) -> std::int64_t {
                                    throw std::runtime_error("oops");
                                  })
                          .ok());
        }});
    const auto result = guest->instance->call(find<std::int64_t()>(*guest, "run"));
    EXPECT_EQ(result.error().code, ErrorCode::kInternal);
    EXPECT_THAT(result.error().message, HasSubstr("oops"));
  });
}

TEST(Linker, AMissingImportIsNamed) {
  const auto prepared = prepare_module(wat_to_wasm(kHostCaller).value()).value();
  const auto module = Module::compile(shared_engine(), prepared.wasm).value();
  const Linker linker(shared_engine());
  const auto pre = InstancePre::create(shared_engine(), linker, module, prepared.facts, nullptr);
  EXPECT_THAT(pre.error().message, HasSubstr("env::f"));
}

TEST(Linker, ASecondDefinitionIsRefused) {
  Linker linker(shared_engine());
  ASSERT_TRUE(linker.define("env", "f", [](Caller&) {}).ok());
  EXPECT_FALSE(linker.define("env", "f", [](Caller&) {}).ok());
}

}  // namespace
}  // namespace sw::wasm
