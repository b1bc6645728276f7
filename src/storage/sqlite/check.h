// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sandbox_workers/base/result.h"

namespace sw::storage {

struct StorageCheck {
  std::uint64_t objects = 0;
  std::uint64_t layers = 0;
  std::uint64_t frames = 0;           ///< in the journal
  std::uint64_t journal_bytes = 0;    ///< of them
  std::vector<std::string> problems;  ///< for people; empty: nothing is wrong
};

/// Reads everything in a data folder, and changes nothing.
/// Errors: kNotFound if it is none; kUnavailable while a process uses it, or if it cannot be read.
Result<StorageCheck> check_data_folder(const std::filesystem::path& folder);

}  // namespace sw::storage
