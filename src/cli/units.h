// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "sandbox_workers/base/result.h"

namespace sw::cli {

/// "10s", "500ms", "2m", "1.5" (seconds), "none" (zero). Errors: kInvalidArgument.
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

/// "512M", "1G", "64K", "1048576"; powers of 1024. Errors: kInvalidArgument.
Result<std::uint64_t> parse_bytes(std::string_view text);

/// "216 MB"; powers of 1000, for reading.
std::string show_bytes(std::uint64_t bytes);

}  // namespace sw::cli
