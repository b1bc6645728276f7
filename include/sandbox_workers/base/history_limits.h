// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sw {

/// Which steps of a context can be gone back to. Checkpoints, the newest step and the one it began
/// with are kept in any case, and do not count.
struct HistoryLimits {
  /// What the kept steps wrote, together. Beyond it the oldest go.
  std::uint64_t bytes_max = std::uint64_t{64} << 20;
  /// How many are kept, whatever they wrote.
  std::uint32_t steps_max = 1000;
  /// All of the last so many are kept, …
  std::uint32_t full = 100;
  /// … and of the older ones those whose number it divides. Zero: none.
  std::uint32_t every = 10;
};

/// How far back the files of a sandbox can be put. Of its changes the last are kept; the oldest go first.
struct FileHistoryLimits {
  /// What these replaced: contents that no file has any more, and the names of what changed.
  std::uint64_t bytes_max = std::uint64_t{64} << 20;
  std::uint32_t changes_max = 1000;
};

}  // namespace sw
