// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small rows with a version and a checksum, into which the row's key goes: a row under another's
// key is noticed.

#include <string_view>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "snapshot/wire.h"

namespace sw::snapshot {

/// {version, checksum of key and content, content}
Bytes sealed(std::string_view key, const WireWriter& content);
/// Errors: kCorrupt.
Result<WireReader> unsealed(std::string_view key, BytesView row);

}  // namespace sw::snapshot
