// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "sandbox_workers/base/cancellation.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasi/errno.h"

namespace sw::wasi {

/// Random bytes from the kernel. `to` may be guest memory.
Errno fill_random(std::span<std::byte> to);
/// The same for as many as a guest asks for: kGuestStopped once the run was cancelled (null:
/// never).
Result<Errno> fill_random(std::span<std::byte> to, const Cancellation* cancellation);

}  // namespace sw::wasi
