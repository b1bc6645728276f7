// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"

namespace sw::engine {

/// What a session's snapshot keeps beside the memory (SessionSnapshot::extra).
struct SavedHost {
  std::uint64_t cells = 0;
  std::uint64_t monotonic_ns = 0;
  BytesView tmp;          ///< wasi::TreeState::serialize; empty when nothing was kept
  BytesView descriptors;  ///< wasi::DescriptorTable::serialize
};

Bytes encode(const SavedHost& saved);
/// `bytes` may come from anywhere, and must outlive the result. Errors: kCorrupt.
Result<SavedHost> decode_saved_host(BytesView bytes);

}  // namespace sw::engine
