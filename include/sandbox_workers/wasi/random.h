// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "sandbox_workers/wasi/errno.h"

namespace sw::wasi {

/// Random bytes from the kernel. `to` may be guest memory.
Errno fill_random(std::span<std::byte> to);

}  // namespace sw::wasi
