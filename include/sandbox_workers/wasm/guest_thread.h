// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasm/runtime.h"

namespace sw::wasm {

/// Bytes of stack between the caller's frame and the end of this thread's stack.
std::size_t stack_bytes_left();

/// Runs `body` on a new thread whose stack is large enough for guests of a runtime with these
/// options, and waits for it. The stack is address space only until it is used.
Result<void> run_on_guest_thread(const RuntimeOptions& options, const std::function<void()>& body);

}  // namespace sw::wasm
