// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasm/memory_view.h"

namespace sw::engine {

/// Lets CPython use more of its stack. It raises RecursionError when the stack pointer passes a
/// limit which this build puts 112 KiB below the top, although the linker gave it 16 MiB: a
/// recursion through C (a key function of `sorted`, a generator in `sum`) would end after some
/// hundred levels. The limits are words of the thread's state, computed once; at bake they are set
/// anew.
///
/// The stack on the host's side grows along, by up to some sixteen times as much for the frames
/// that use least of the guest's; kStackBytes is chosen so that it suffices.
/// Errors: kNotFound when the words are not where they belong.
Result<void> raise_stack_limits(wasm::MemoryView memory, std::uint32_t thread_state);

}  // namespace sw::engine
