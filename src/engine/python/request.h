// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the driver is sent: the program that loads it, and a cell to run. Formats:
// engines/python/driver/boot.py and cell.py.

#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/engine/language.h"
#include "sandbox_workers/engine/run.h"

namespace sw::engine {

struct CellFlags {
  bool fresh = false;   ///< the first cell after the image or a snapshot
  bool files = false;   ///< there may be files in /workspace
  bool script = false;  ///< the code is a program in a file
  bool home = false;    ///< the program knows the workspace as /home/user
};

/// A cell as a tuple in marshal's format.
std::string cell_request(const Run& request, std::string_view file_name, const CellFlags& flags);

/// Python source that runs the driver's boot.py with the other files at hand. `files` are paths and
/// contents.
std::string boot_source(const std::vector<DriverFile>& files,
                        const std::vector<std::string>& imports);

}  // namespace sw::engine
