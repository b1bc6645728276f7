// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace sw {

/// When a change counts as done.
enum class Durability : std::uint8_t {
  kCommit,   ///< once it survives power loss
  kRelaxed,  ///< at once; it is written within kRelaxedDelay, and a crash before that loses it
};
inline constexpr std::chrono::milliseconds kRelaxedDelay{100};

}  // namespace sw
