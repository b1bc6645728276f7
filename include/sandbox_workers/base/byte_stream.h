// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Bytes that are too many to be held in memory at once.

#include <cstddef>
#include <functional>
#include <span>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"

namespace sw {

/// Takes the next bytes of a stream, all of them.
using WriteBytes = std::function<Result<void>(BytesView bytes)>;
/// Puts the next bytes of a stream into `buffer`, and returns how many; 0 at the end.
using ReadBytes = std::function<Result<std::size_t>(std::span<std::byte> buffer)>;

}  // namespace sw
