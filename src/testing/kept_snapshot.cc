// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "testing/kept_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace sw::testing {

namespace {

/// Are the bytes from `begin` to `end` those of `base`, and zeros after it?
bool is_as_base(BytesView memory, BytesView base, std::size_t begin, std::size_t end) {
  const std::size_t in_base = std::clamp(base.size(), begin, end);
  const auto from_base = memory.subspan(begin, in_base - begin);
  const auto zeros = memory.subspan(in_base, end - in_base);
  return std::ranges::equal(from_base,
                            base.subspan(std::min(begin, base.size()), from_base.size())) &&
         std::ranges::all_of(zeros, [](std::byte byte) { return byte == std::byte{0}; });
}

Error misses(std::size_t begin, std::size_t end) {
  return Error{
      ErrorCode::kInternal,
      fmt::format("`changed` leaves out a change between {} and {} of the memory", begin, end), 0};
}

}  // namespace

Result<KeptSnapshot> KeptSnapshot::copy(const engine::SessionSnapshot& snapshot) {
  if (!snapshot.memory) return Error{ErrorCode::kInternal, "`snapshot` gives no memory", 0};
  const std::uint64_t size = snapshot.memory->memory_bytes();
  if (size % kPageBytes != 0) {
    return Error{ErrorCode::kInternal, "the memory's size is not a multiple of 4096 bytes", 0};
  }
  Bytes memory;
  memory.reserve(size);
  for (std::uint32_t page = 0; page < size / kPageBytes; ++page) {
    SW_TRY(const PageView bytes, snapshot.memory->read(page));
    memory.insert(memory.end(), bytes.begin(), bytes.end());
  }
  return KeptSnapshot(std::move(memory), snapshot.extra);
}

Result<BytesView> KeptSnapshot::fill(PageSink& memory, BytesView /*base*/) {
  if (memory.memory_bytes() < memory_.size()) {
    return Error{ErrorCode::kInternal, "the memory to restore into is smaller than the saved one",
                 0};
  }
  for (std::uint32_t page = 0; page < memory_.size() / kPageBytes; ++page) {
    SW_TRY(const PageSpan room, memory.write(page));
    std::ranges::copy(BytesView(memory_).subspan(page * kPageBytes, kPageBytes), room.begin());
  }
  return BytesView(extra_);
}

Result<void> KeptSnapshot::check_changed(const engine::SessionSnapshot& snapshot,
                                         const KeptSnapshot* before) const {
  const BytesView base = before == nullptr ? snapshot.base : BytesView(before->memory_);
  std::size_t at = 0;
  for (const ByteRange& range : snapshot.changed) {
    if (range.begin < at) {
      return Error{ErrorCode::kInternal, "the ranges in `changed` must ascend and not overlap", 0};
    }
    if (range.end < range.begin || range.end > memory_.size()) {
      return Error{ErrorCode::kInternal, "`changed` names bytes that the memory does not have", 0};
    }
    if (range.begin > at && !is_as_base(memory_, base, at, range.begin)) {
      return misses(at, range.begin);
    }
    at = range.end;
  }
  if (is_as_base(memory_, base, at, memory_.size())) return {};
  return misses(at, memory_.size());
}

}  // namespace sw::testing
