// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: how much memory code takes. allocation_peak.cc replaces the program's operator new.

#include <cstddef>
#include <functional>

namespace sw {

/// By how much the memory from operator new, of all threads, grew at most while `work` ran.
std::size_t allocation_peak(const std::function<void()>& work);

}  // namespace sw
