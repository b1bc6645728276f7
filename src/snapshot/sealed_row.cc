// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/sealed_row.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace sw::snapshot {

namespace {

constexpr std::uint8_t kRowVersion = 1;

std::uint64_t sum_of(std::string_view key, BytesView content) {
  return XXH3_64bits_withSeed(content.data(), content.size(), XXH3_64bits(key.data(), key.size()));
}

}  // namespace

Bytes sealed(std::string_view key, const WireWriter& content) {
  WireWriter out;
  out.u8(kRowVersion);
  out.u64(sum_of(key, content.out()));
  out.bytes(content.out());
  return out.take();
}

Result<WireReader> unsealed(std::string_view key, BytesView row) {
  WireReader in(row);
  const std::uint8_t version = in.u8();
  const std::uint64_t sum = in.u64();
  const BytesView content = in.ok() ? row.last(in.left()) : BytesView{};
  if (!in.ok() || version != kRowVersion) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("snapshot row: format version {} is unknown", version)};
  }
  if (sum != sum_of(key, content))
    return Error{ErrorCode::kCorrupt, "snapshot row: checksum mismatch"};
  return in;
}

}  // namespace sw::snapshot
