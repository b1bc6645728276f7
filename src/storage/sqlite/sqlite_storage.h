// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Storage in a data folder: a commit journal, a SQLite database for each layer, and a directory of
// the objects (docs/data-folder.md, ADR 0007, ADR 0022).

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "sandbox_workers/base/result.h"
#include "storage/storage.h"

namespace sw::storage {

struct SqliteOptions {
  /// Databases kept open: each takes two descriptors.
  std::size_t idle_open_max = 128;
  /// SQLite's file layer; empty: the system's. Tests put one in between that fails.
  std::string vfs = {};
  /// Told what an operator should know, such as damage. From any thread.
  std::function<void(std::string_view)> on_notice = {};
  /// How many have to wait for a processor before they can commit something: JournalOptions.
  std::function<std::size_t()> waiting = {};
  /// When the journal has grown to this, what is in it is moved to the databases, in the background.
  std::uint64_t journal_bytes_max = std::uint64_t{8} << 20U;
  /// At the end the journal is left as it is unless it has more than this.
  std::uint64_t journal_bytes_left = std::uint64_t{1} << 20U;
};

/// Whether there is anything of a data folder's.
bool is_data_folder(const std::filesystem::path& folder);

/// Takes the folder over. kUnavailable while another process has it.
Result<std::unique_ptr<Storage>> open_sqlite_storage(const std::filesystem::path& folder,
                                                     SqliteOptions options);

}  // namespace sw::storage
