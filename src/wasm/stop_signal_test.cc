// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasm/stop_signal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <latch>
#include <string>
#include <thread>
#include <tuple>

#include "base/thread_safety.h"
#include "wasm/test_guest.h"

namespace sw::wasm {
namespace {

/// Calls `stop` until the call in the background is over.
Result<void> stop_while_running(Guest& guest, const Function<void()>& function) {
  Mutex mutex;
  CondVar changed;
  bool over = false;  // guarded by `mutex`
  std::thread stopper([&] {
    MutexLock lock(mutex);
    // A try that meets host code is undone by it, so there is a pause in which the host code can go
    // on.
    while (!over) {
      if (!changed.wait_for(lock, std::chrono::milliseconds(1))) guest.instance->stop();
    }
  });
  auto result = guest.instance->call(function);
  {
    const MutexLock lock(mutex);
    over = true;
  }
  changed.notify_one();
  stopper.join();
  return result;
}

struct StopCase {
  const char* name;
  const char* body;
};
class Stop : public ::testing::TestWithParam<std::tuple<StopMeans, StopCase>> {};

TEST_P(Stop, EndsALoopAndTheSlotIsUsableAgain) {
  on_guest_thread([] {
    const std::string wat = std::string(R"((module (import "env" "touch" (func $touch))
        (memory (export "memory") 64) (func (export "loop") (loop $l )") +
                            std::get<StopCase>(GetParam()).body + R"( (br $l)))
        (func (export "get") (result i32) (i32.load (i32.const 0)))))";
    auto guest =
        make_guest(wat, {.define =
                             [](Linker& linker) {
                               ASSERT_TRUE(linker
                                               .define("env", "touch",
                                                       [](Caller& caller) {
                                                         // Host code meets the blocked memory as
                                                         // well.
                                                         std::ranges::fill(
                                                             caller.memory().bytes().first(10'000),
                                                             std::byte{1});
                                                       })
                                               .ok());
                             },
                         .with_image = true,
                         .stop_means = std::get<StopMeans>(GetParam())});
    const auto result = stop_while_running(*guest, find<void()>(*guest, "loop"));
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::kGuestStopped);
    EXPECT_EQ(guest->instance->reset().verdict, KeepVerdict::kEndedAbnormally);
    guest->instance.reset();
    guest->instance = guest->pre->instantiate(guest->host, {}).value();
    EXPECT_EQ(guest->instance->call(find<std::int32_t()>(*guest, "get")).value(), 0);
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, Stop,
    ::testing::Combine(
        ::testing::Values(StopMeans::kFault, StopMeans::kEpoch),
        ::testing::Values(
            StopCase{"Load", "(drop (i32.load (i32.const 8)))"},
            StopCase{"Store", "(i32.store (i32.const 8) (i32.const 1))"},
            // memory.fill and memory.copy run in Wasmtime's own code, where a fault must not end
            // the process. Most tries meet that code; were it more, a busy machine would take long
            // to come to one that does not.
            StopCase{"Fill",
                     "(memory.fill (i32.const 0) (i32.const 1) (i32.const 10000)) (drop (i32.load "
                     "(i32.const 8)))"},
            StopCase{"Copy",
                     "(memory.copy (i32.const 0) (i32.const 8) (i32.const 10000)) (drop (i32.load "
                     "(i32.const 8)))"},
            // A short copy is a few loads and stores in the guest's code, of which Wasmtime knows
            // that they cannot trap.
            StopCase{"ShortCopy",
                     "(memory.copy (i32.const 64) (i32.const 200) (i32.const 40)) (drop (i32.load "
                     "(i32.const 8)))"},
            StopCase{"HostFunction", "(call $touch)"})),
    [](const auto& param_info) {
      const bool is_epoch = std::get<StopMeans>(param_info.param) == StopMeans::kEpoch;
      return std::string(std::get<StopCase>(param_info.param).name) +
             (is_epoch ? "ByEpoch" : "ByFault");
    });

TEST(StopByEpoch, EndsALoopThatTouchesNoMemory) {
  on_guest_thread([] {
    auto guest = make_guest(R"((module (func (export "loop") (loop $l (br $l)))))",
                            {.stop_means = StopMeans::kEpoch});
    EXPECT_EQ(stop_while_running(*guest, find<void()>(*guest, "loop")).error().code,
              ErrorCode::kGuestStopped);
  });
}

TEST(StopByEpoch, LetsOtherInstancesOfTheEngineGoOn) {
  constexpr std::string_view kSum = R"((module (import "env" "at_work" (func $at_work))
      (func (export "loop") (loop $l (br $l)))
      (func (export "sum") (param $n i32) (result i64) (local $s i64)
        (call $at_work)
        (loop $l (local.set $s (i64.add (local.get $s) (i64.extend_i32_u (local.get $n))))
          (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
        (local.get $s))))";
  std::latch at_work(1);
  const auto define = [&](Linker& linker) {
    ASSERT_TRUE(linker.define("env", "at_work", [&](Caller&) { at_work.count_down(); }).ok());
  };
  std::thread beside([&] {
    on_guest_thread([&] {
      auto guest = make_guest(kSum, {.define = define, .stop_means = StopMeans::kEpoch});
      const auto sum =
          guest->instance->call(find<std::int64_t(std::int32_t)>(*guest, "sum"), 100'000'000);
      ASSERT_TRUE(sum.ok()) << sum.error().message;
      EXPECT_EQ(sum.value(), 5'000'000'050'000'000);
    });
  });
  at_work.wait();
  on_guest_thread([&] {
    for (int i = 0; i < 20; ++i) {
      auto guest = make_guest(kSum, {.define = define, .stop_means = StopMeans::kEpoch});
      EXPECT_EQ(stop_while_running(*guest, find<void()>(*guest, "loop")).error().code,
                ErrorCode::kGuestStopped);
    }
  });
  beside.join();
}

TEST(Stop, DoesNothingBetweenCalls) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter, {.with_image = true});
    guest->instance->stop();
    EXPECT_FALSE(guest->instance->while_running([](MemoryView) { FAIL(); }));
    EXPECT_EQ(guest->instance->call(find<std::int32_t(std::int32_t)>(*guest, "get"), 16).value(),
              42);
  });
}

}  // namespace
}  // namespace sw::wasm
