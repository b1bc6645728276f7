// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

namespace sw {

/// What went wrong, without the places in source code that Boost adds.
std::string describe(const std::exception& problem);

}  // namespace sw
