// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/engine/budget.h"
#include "engine/watchdog.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "sandbox_workers/engine/engine.h"
#include "sandbox_workers/wasm/guest_thread.h"
#include "sandbox_workers/wasm/linker.h"
#include "sandbox_workers/wasm/module.h"
#include "sandbox_workers/wasm/runtime.h"

namespace sw::engine {
namespace {

using namespace std::chrono_literals;

// `spin` ends when the word at 0 is set, `answer` at once.
constexpr char kModule[] = R"((module
  (memory (export "memory") 1)
  (func (export "spin") (loop (br_if 0 (i32.eqz (i32.load (i32.const 0))))))
  (func (export "answer") (result i32) (i32.const 42))))";

struct BudgetTest : ::testing::Test {
  std::unique_ptr<wasm::Runtime> engine = wasm::Runtime::create({}).value();
  Watchdog watchdog;
  wasm::HostState host;

  void run(const std::function<void(wasm::Instance&)>& body) {
    const auto prepared = wasm::prepare_module(wasm::wat_to_wasm(kModule).value()).value();
    const auto module = wasm::Module::compile(*engine, prepared.wasm).value();
    const wasm::Linker linker(*engine);
    const auto pre =
        wasm::InstancePre::create(*engine, linker, module, prepared.facts, nullptr).value();
    const auto instance = pre->instantiate(host, {}).value();
    ASSERT_TRUE(wasm::run_on_guest_thread(engine->options(), [&] { body(*instance); }).ok());
  }
};

TEST_F(BudgetTest, LeavesARunWithinItsLimitsAlone) {
  run([&](wasm::Instance& instance) {
    const auto meter = budget(watchdog, instance, {.limits = {.wall_max = 1h}});
    const auto answer = instance.function<std::int32_t()>("answer").value();
    EXPECT_EQ(instance.call(answer).value(), 42);
    const BudgetResult spent = meter->finish();
    EXPECT_EQ(spent.reason, StopReason::kNone);
    EXPECT_GT(spent.wall.count(), 0);
    EXPECT_EQ(meter->finish().wall, spent.wall);
    EXPECT_FALSE(instance.poisoned());
  });
}

TEST_F(BudgetTest, AGuestThatCanBeAskedKeepsItsInstance) {
  run([&](wasm::Instance& instance) {
    const auto ask = [&] {
      instance.while_running(
          [](wasm::MemoryView memory) { EXPECT_TRUE(memory.store<std::int32_t>(0, 1)); });
    };
    const auto meter =
        budget(watchdog, instance, {.limits = {.wall_max = 1ms, .grace = 1h}, .soft_stop = ask});
    const auto spin = instance.function<void()>("spin").value();
    EXPECT_TRUE(instance.call(spin).ok());
    EXPECT_EQ(meter->finish().reason, StopReason::kWallLimit);
    EXPECT_FALSE(instance.poisoned());
  });
}

TEST_F(BudgetTest, AGuestThatCannotBeAskedIsEndedWithoutGrace) {
  run([&](wasm::Instance& instance) {
    const auto meter =
        budget(watchdog, instance, {.limits = {.wall_max = 0ns, .cpu_max = 5ms, .grace = 1h}});
    const auto spin = instance.function<void()>("spin").value();
    EXPECT_EQ(instance.call(spin).error().code, ErrorCode::kGuestStopped);
    EXPECT_EQ(meter->finish().reason, StopReason::kCpuLimit);
    EXPECT_TRUE(instance.poisoned());
  });
}

TEST_F(BudgetTest, ACancelledRunEnds) {
  run([&](wasm::Instance& instance) {
    std::stop_source source;
    const auto meter =
        budget(watchdog, instance, {.limits = {.wall_max = 1h}, .cancel = source.get_token()});
    source.request_stop();
    const auto spin = instance.function<void()>("spin").value();
    EXPECT_FALSE(instance.call(spin).ok());
    EXPECT_EQ(meter->finish().reason, StopReason::kCancelled);
  });
}

TEST(StopError, SaysWhichLimitItWas) {
  const Error error = stop_error(StopReason::kWallLimit, {.wall_max = 200ms});
  EXPECT_EQ(error.message, "time limit of 0.2 s reached");
  EXPECT_TRUE(is_execution_limit(error));
  EXPECT_EQ(stop_message(StopReason::kCpuLimit, {.cpu_max = 2s}), "CPU time limit of 2 s reached");
  EXPECT_EQ(stop_message(StopReason::kCancelled, {}), "cancelled");
}

}  // namespace
}  // namespace sw::engine
