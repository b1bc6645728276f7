// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hostile/grammar.h"
#include "sandbox_workers/engine/run.h"

namespace sw::hostile {

/// Where a program is run.
enum class Manner : std::uint8_t {
  kFresh,    ///< by an engine, with nothing kept
  kContext,  ///< in a code context, cell after cell
  kCommand,  ///< by `sandbox-workers run`
};

/// All that a seed decides.
struct Plan {
  std::uint64_t seed = 0;
  std::uint64_t image_bytes = 0;  ///< the memory with which the language's runs begin
  Manner manner = Manner::kFresh;
  std::vector<Program> programs;  ///< several only in a context
  RunLimits limits;
  std::optional<std::chrono::microseconds> cancel_after;
};

Plan draw_plan(const Grammar& grammar, std::uint64_t seed, std::uint64_t image_bytes);

/// For people: the limits, then the programs, each cut to `bytes_max`.
std::string describe(const Plan& plan, std::size_t bytes_max);

}  // namespace sw::hostile
