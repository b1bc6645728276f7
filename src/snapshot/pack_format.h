// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the encoder and the decoder of packs agree on.
//
// The directory is written column by column (all page numbers, then all kinds, …), because like
// compresses well with like. Checks are random, so they stand apart, uncompressed. Whole pages
// stand at the end of the differences, transposed by the stride that suits them.

#include <array>
#include <cstddef>
#include <cstdint>

#include "snapshot/pack.h"

namespace sw::snapshot {

inline constexpr std::array<std::byte, 3> kMagic = {std::byte{'S'}, std::byte{'W'}, std::byte{'P'}};
inline constexpr std::size_t kHeaderBytes = kMagic.size() + 1 + sizeof(std::uint64_t);
inline constexpr std::uint8_t kKindWhole = 4;
inline constexpr std::uint8_t kHasVersion = 1;
inline constexpr std::uint8_t kHasHostTables = 2;

/// The id goes into the sum, so that a pack under another's key is noticed.
std::uint64_t sum_of(PackId id, BytesView body);

}  // namespace sw::snapshot
