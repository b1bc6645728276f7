// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "sandbox_workers/base/result.h"

namespace sw::storage {

struct BackupReport {
  std::size_t objects = 0;           ///< copied
  std::vector<std::string> damaged;  ///< what could not be copied, and why; the rest was
};

/// Copies a data folder, whether a process uses it or not, to a new folder that can be used in its
/// place. Each object is copied as it was between two of its transactions; different objects may be
/// from different moments within the time that the copying takes. Deleted content is not copied.
/// Errors: kInvalidArgument if `destination` exists; kNotFound if `folder` is not a data folder;
/// kUnavailable.
Result<BackupReport> back_up(const std::filesystem::path& folder,
                             const std::filesystem::path& destination);

}  // namespace sw::storage
