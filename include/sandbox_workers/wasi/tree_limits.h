// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sw::wasi {

struct TreeLimits {                                         // what a tree may hold
  std::uint64_t file_bytes_max = std::uint64_t{256} << 20;  ///< past it EFBIG
  std::uint64_t tree_bytes_max = std::uint64_t{512} << 20;  ///< past it ENOSPC; holes count
  std::uint64_t entries_max = 100'000;                      ///< past it ENOSPC
  /// Directories in one another; past it ENAMETOOLONG
  std::uint32_t depth_max = 128;
};

}  // namespace sw::wasi
