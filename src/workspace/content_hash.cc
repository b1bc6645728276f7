// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "sandbox_workers/workspace/workspace.h"

namespace sw {

// Part of the protocol: two 32-bit lanes, written one after the other.
std::string content_hash(BytesView bytes) {
  std::uint32_t h1 = 0x811c9dc5U;
  std::uint32_t h2 = 0x01000193U ^ static_cast<std::uint32_t>(bytes.size());
  for (const std::byte byte : bytes) {
    const auto value = std::to_integer<std::uint32_t>(byte);
    h1 = (h1 ^ value) * 0x01000193U;
    h2 = (h2 + value) * 0x85ebca6bU;
  }
  return fmt::format("{:08x}{:08x}", h1, h2);
}

}  // namespace sw
