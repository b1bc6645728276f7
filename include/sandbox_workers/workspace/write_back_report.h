// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sw {

/// What was written back to the folder that a workspace was loaded from.
struct WriteBackReport {
  std::size_t written = 0;  ///< files, folders and links that were made, changed or removed
  std::vector<std::string> refused = {};  ///< what was left as it was, with the reason
  std::vector<std::string> left = {};     ///< what could not be removed, with the reason
  std::string error = {};                 ///< why nothing was written; empty otherwise
};

}  // namespace sw
