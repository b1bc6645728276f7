// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/pack.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <charconv>

#include "snapshot/pack_format.h"

namespace sw::snapshot {

std::string to_string(PackId id) { return fmt::format("{}.{}", id.owner, id.sequence); }

std::optional<PackId> parse_pack_id(std::string_view text) {
  PackId id;
  const char* const end = text.data() + text.size();
  const auto owner = std::from_chars(text.data(), end, id.owner);
  if (owner.ec != std::errc() || owner.ptr == end || *owner.ptr != '.') return std::nullopt;
  const auto sequence = std::from_chars(owner.ptr + 1, end, id.sequence);
  if (sequence.ec != std::errc() || sequence.ptr != end || !id) return std::nullopt;
  return id;
}

std::uint64_t sum_of(PackId id, BytesView body) {
  return XXH3_64bits_withSeed(body.data(), body.size(),
                              (std::uint64_t{id.owner} << 32U) | id.sequence);
}

}  // namespace sw::snapshot
