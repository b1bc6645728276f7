// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "testing/kept_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace sw::testing {

namespace {

/// `size` bytes of what an instance begins with from `begin` on equal those of `memory`?
bool is_as_base(const engine::SessionSnapshot& snapshot, std::size_t begin, std::size_t end) {
  const std::size_t in_base = std::clamp(snapshot.base.size(), begin, end);
  if (!std::equal(snapshot.memory.begin() + static_cast<std::ptrdiff_t>(begin),
                  snapshot.memory.begin() + static_cast<std::ptrdiff_t>(in_base),
                  snapshot.base.begin() +
                      static_cast<std::ptrdiff_t>(std::min(begin, snapshot.base.size())))) {
    return false;
  }
  return std::all_of(snapshot.memory.begin() + static_cast<std::ptrdiff_t>(in_base),
                     snapshot.memory.begin() + static_cast<std::ptrdiff_t>(end),
                     [](std::byte byte) { return byte == std::byte{0}; });
}

Error misses(std::size_t begin, std::size_t end) {
  return Error{
      ErrorCode::kInternal,
      fmt::format("`changed` leaves out a change between {} and {} of the memory", begin, end), 0};
}

}  // namespace

KeptSnapshot::KeptSnapshot(const engine::SessionSnapshot& snapshot)
    : memory_(snapshot.memory.begin(), snapshot.memory.end()), extra_(snapshot.extra) {}

Result<BytesView> KeptSnapshot::fill(std::span<std::byte> memory, BytesView /*base*/) {
  if (memory.size() < memory_.size()) {
    return Error{ErrorCode::kInternal, "the memory to restore into is smaller than the saved one",
                 0};
  }
  std::ranges::copy(memory_, memory.begin());
  return BytesView(extra_);
}

Result<void> check_changed(const engine::SessionSnapshot& snapshot) {
  if (snapshot.memory.size() % 4096 != 0) {
    return Error{ErrorCode::kInternal, "the memory's size is not a multiple of 4096 bytes", 0};
  }
  std::vector<ByteRange> changed = snapshot.changed;
  std::ranges::sort(changed, {}, &ByteRange::begin);
  std::size_t at = 0;
  for (const ByteRange& range : changed) {
    if (range.end < range.begin || range.end > snapshot.memory.size()) {
      return Error{ErrorCode::kInternal, "`changed` names bytes that the memory does not have", 0};
    }
    if (range.begin > at && !is_as_base(snapshot, at, range.begin)) return misses(at, range.begin);
    at = std::max(at, range.end);
  }
  if (!is_as_base(snapshot, at, snapshot.memory.size())) return misses(at, snapshot.memory.size());
  return {};
}

}  // namespace sw::testing
