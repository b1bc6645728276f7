// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string_view>

namespace sw::bake {

/// Told what is being done from now on, and about how long that takes on two cores (zero: not worth
/// saying).
using Progress = std::function<void(std::string_view step, std::chrono::seconds expected)>;

/// For those who do not want to know.
inline void no_progress(std::string_view /*step*/, std::chrono::seconds /*expected*/) {}

}  // namespace sw::bake
