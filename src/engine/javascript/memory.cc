// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// A program may keep all of the memory in its variables. Then the next cell, which may be there to
// free it, could not even be compiled. So a little of the run's memory is refused to programs, and
// lent to a cell that has no room to begin, and to the driver when it describes the error.

#include <algorithm>

#include "engine/javascript/guest.h"

namespace sw::engine::javascript {

namespace {

// Of the limit, a sixteenth at most.
constexpr std::uint64_t kReserveBytesMax = std::uint64_t{8} << 20;
constexpr std::uint64_t kReserveShare = 16;
// Enough to compile, run and answer a short cell.
constexpr std::uint64_t kRoomBytes = std::uint64_t{64} << 10;
// Little, since a cell may keep what it was lent, and the reserve must last for many cells.
constexpr std::uint64_t kLoanBytes = 2 * kRoomBytes;
// With less than this, and what was lent is part of it, the next cell will hardly do anything but
// free some.
constexpr std::uint64_t kFullBytes = 4 * kLoanBytes;

}  // namespace

void JavaScriptGuest::keep_reserve() {
  const std::uint64_t reserve = std::min(kReserveBytesMax, memory_max_ / kReserveShare);
  instance().set_memory_bytes_max(memory_max_ - reserve);
}

void JavaScriptGuest::lend_reserve() {
  const std::uint64_t now = std::max<std::uint64_t>(memory().size(), instance().memory_bytes_max());
  instance().set_memory_bytes_max(
      std::min(memory_max_, std::max(now, memory().size() + kLoanBytes)));
}

Result<bool> JavaScriptGuest::has_room(std::uint64_t bytes) {
  SW_TRY(const std::uint32_t block, js_.allocate(bytes));
  if (block == 0) return false;
  SW_CHECK_OK(js_.deallocate(block));
  return true;
}

Result<bool> JavaScriptGuest::is_full() {
  keep_reserve();
  SW_TRY(const bool has, has_room(kFullBytes));
  return !has;
}

Result<void> JavaScriptGuest::make_room() {
  // As long as the memory may grow nothing is asked of the guest: what that writes would have to be
  // put back.
  if (memory().size() + kRoomBytes <= instance().memory_bytes_max()) return {};
  SW_TRY(bool has, has_room(kRoomBytes));
  if (has) return {};
  // What is only held in circles is freed by a collection; it does not come because memory runs
  // out.
  SW_CHECK_OK(instance().call(js_.exports().run_gc));
  SW_TRY(has, has_room(kRoomBytes));
  if (!has) lend_reserve();
  return {};
}

}  // namespace sw::engine::javascript
