// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests of each function of preview 1 as a guest calls it: the flags of path_open.

#include <cstdint>

#include "wasi/guest_support.h"

namespace sw::wasi {

inline constexpr std::uint32_t kCreate = 1;
inline constexpr std::uint32_t kDirectory = 2;
inline constexpr std::uint32_t kExclusive = 4;
inline constexpr std::uint32_t kTruncate = 8;

using Functions = GuestTest;

}  // namespace sw::wasi
