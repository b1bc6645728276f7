// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasm/guest_thread.h"

#include <gtest/gtest.h>

#include <thread>

namespace sw::wasm {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(GuestThread, RunsTheBodyOnAThreadOfItsOwnAndWaitsForIt) {
  std::thread::id ran_on;
  ASSERT_TRUE(run_on_guest_thread({}, [&] { ran_on = std::this_thread::get_id(); }).ok());
  EXPECT_NE(ran_on, std::thread::id());
  EXPECT_NE(ran_on, std::this_thread::get_id());
}

TEST(GuestThread, HasRoomForTheGuestsOfTheRuntimeAndForTheHost) {
  for (const std::size_t guests : {16 * kMiB, 300 * kMiB}) {
    std::size_t left = 0;
    ASSERT_TRUE(
        run_on_guest_thread({.stack_bytes_max = guests}, [&] { left = stack_bytes_left(); }).ok());
    EXPECT_GT(left, guests + kHostStackReserve);
  }
}

TEST(GuestThread, AStackThatNoProcessHasRoomForIsAnError) {
  bool ran = false;
  const auto started =
      run_on_guest_thread({.stack_bytes_max = std::size_t{1} << 50}, [&] { ran = true; });
  ASSERT_FALSE(started.ok());
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace sw::wasm
