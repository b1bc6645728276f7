// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: how much memory code takes, and what it does when there is none. test_allocations.cc
// replaces the program's operator new.

#include <cstddef>
#include <functional>

namespace sw {

/// By how much the memory from operator new, of all threads, grew at most while `work` ran.
std::size_t allocation_peak(const std::function<void()>& work);

/// Runs `work`, in which this thread's first `count` allocations succeed and the next ones throw
/// std::bad_alloc. `work` may let it through.
void with_allocations(int count, const std::function<void()>& work);

}  // namespace sw
