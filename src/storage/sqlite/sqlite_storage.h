// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Storage in a data folder: a SQLite database per object and a catalog of them
// (docs/data-folder.md, ADR 0007).

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "sandbox_workers/base/result.h"
#include "storage/storage.h"

namespace sw::storage {

struct SqliteOptions {
  /// Databases kept open while nobody uses them: each takes three descriptors.
  std::size_t idle_open_max = 128;
  /// SQLite's file layer; empty: the system's. Tests put one in between that fails.
  std::string vfs = {};
  /// Told what an operator should know, such as a catalog that had to be made anew.
  std::function<void(std::string_view)> on_notice = {};
};

/// Takes the folder over. kUnavailable while another process has it.
Result<std::unique_ptr<Storage>> open_sqlite_storage(const std::filesystem::path& folder,
                                                     SqliteOptions options);

}  // namespace sw::storage
