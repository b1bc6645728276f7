// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hostile/plan.h"
#include "sandbox_workers/engine/engine.h"

namespace sw::hostile {

/// What was wrong with a run; empty: nothing.
using Complaints = std::vector<std::string>;

/// What a run may take beyond its limit before it is complained of: more than a busy machine needs,
/// less than what goes on without a limit.
inline constexpr std::chrono::milliseconds kTimeSlack{1500};
inline constexpr std::uint64_t kMemorySlack = std::uint64_t{200} << 20;

/// CPU time within which a run with these limits has ended, exit handlers included.
std::chrono::nanoseconds cpu_bound(const RunLimits& limits);

/// Bytes that a run may add to its process.
std::uint64_t memory_bound(const Plan& plan);

/// Whether the outcome is well formed, and fits the limits and what is known of the program.
Complaints judge(const Plan& plan, const Program& program, const Outcome& outcome,
                 std::string_view out, std::string_view err);

/// Whether the text is one line of JSON.
std::optional<std::string> judge_json(std::string_view text);

/// Whether `status` is the exit status for what the line of JSON says.
std::optional<std::string> judge_status(int status, std::string_view line);

}  // namespace sw::hostile
