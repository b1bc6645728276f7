// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/python/stack_limits.h"

#include <array>

namespace sw::engine {

namespace {

constexpr std::uint32_t kStackBytes = std::uint32_t{2} << 20;
// Below the soft limit an error can still be raised and cleaned up after; past the hard one CPython
// gives up.
constexpr std::uint32_t kMargin = std::uint32_t{64} << 10;
// The three words follow the public part of the thread's state (c_stack_top, c_stack_soft_limit,
// c_stack_hard_limit).
constexpr std::uint32_t kSearchFrom = 0x200;
constexpr std::uint32_t kSearchTo = 0x400;
constexpr std::uint32_t kUsualDistanceMax = std::uint32_t{256} << 10;

bool are_limits(const std::array<std::uint32_t, 3>& words) {
  const auto [top, soft, hard] = words;
  return top > kStackBytes + kMargin && hard < soft && soft < top &&
         top - hard < kUsualDistanceMax && top % 4096 == 0 && soft % 4096 == 0 && hard % 4096 == 0;
}

}  // namespace

Result<void> raise_stack_limits(wasm::MemoryView memory, std::uint32_t thread_state) {
  for (std::uint32_t at = thread_state + kSearchFrom; at < thread_state + kSearchTo; at += 4) {
    auto words = memory.load<std::array<std::uint32_t, 3>>(at);
    if (!words || !are_limits(*words)) continue;
    (*words)[1] = (*words)[0] - kStackBytes;
    (*words)[2] = (*words)[1] - kMargin;
    if (memory.store(at, *words)) return {};
  }
  return Error{ErrorCode::kNotFound, "CPython's stack limits are not in its thread state", 0};
}

}  // namespace sw::engine
