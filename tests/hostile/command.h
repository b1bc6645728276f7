// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/base/result.h"

namespace sw::hostile {

/// How a program that was started ended.
struct Ended {
  int status = 0;  ///< as a shell shows it: 128 and the number, if a signal ended it
  std::string out;
  std::uint64_t resident_bytes_max = 0;
  std::chrono::nanoseconds cpu{};
};

/// Runs a program with `input` as its standard input, and waits for it. What it writes to stderr is
/// dropped. `folder` is for files of ours. Errors: kUnavailable: it did not end by itself within
/// `patience`, and was killed.
Result<Ended> run_command(const std::vector<std::string>& command, std::string_view input,
                          const std::filesystem::path& folder, std::chrono::milliseconds patience);

}  // namespace sw::hostile
