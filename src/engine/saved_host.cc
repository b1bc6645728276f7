// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/saved_host.h"

#include <cstring>

namespace sw::engine {

namespace {

constexpr std::uint64_t kVersion = 2;

/// The fixed part. What is in /tmp follows, then the descriptor table.
struct Head {
  std::uint64_t version = kVersion;
  std::uint64_t cells = 0;
  std::uint64_t monotonic_ns = 0;
  std::uint64_t tmp_bytes = 0;
};

}  // namespace

Bytes encode(const SavedHost& saved) {
  const Head head{
      .cells = saved.cells, .monotonic_ns = saved.monotonic_ns, .tmp_bytes = saved.tmp.size()};
  Bytes bytes(sizeof head);
  std::memcpy(bytes.data(), &head, sizeof head);
  bytes.insert(bytes.end(), saved.tmp.begin(), saved.tmp.end());
  bytes.insert(bytes.end(), saved.descriptors.begin(), saved.descriptors.end());
  return bytes;
}

Result<SavedHost> decode_saved_host(BytesView bytes) {
  Head head;
  if (bytes.size() < sizeof head)
    return Error{ErrorCode::kCorrupt, "a saved session is truncated", 0};
  std::memcpy(&head, bytes.data(), sizeof head);
  const BytesView rest = bytes.subspan(sizeof head);
  if (head.version != kVersion || head.cells == 0 || head.tmp_bytes > rest.size()) {
    return Error{ErrorCode::kCorrupt, "not a saved session", 0};
  }
  const auto tmp_bytes = static_cast<std::size_t>(head.tmp_bytes);
  return SavedHost{.cells = head.cells,
                   .monotonic_ns = head.monotonic_ns,
                   .tmp = rest.first(tmp_bytes),
                   .descriptors = rest.subspan(tmp_bytes)};
}

}  // namespace sw::engine
