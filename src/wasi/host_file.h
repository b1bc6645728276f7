// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The steps of writing one file of a host folder. `path` is for messages.

#include <string>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"

namespace sw::wasi {

Result<void> write_content(int fd, BytesView content, const std::string& path);

/// Gives `to` the owner, group, permissions (no set-user-ID, set-group-ID or sticky bit), access
/// control list and user attributes of `from`. Errors: kPermission when it may not.
Result<void> keep_attributes(int from, int to, const std::string& path);

/// Waits until a file or folder is on the disk.
Result<void> sync_to_disk(int fd, const std::string& path);

}  // namespace sw::wasi
