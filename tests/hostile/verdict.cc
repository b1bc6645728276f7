// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "hostile/verdict.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <map>

#include "engine/result_json.h"
#include "sandbox_workers/base/utf8.h"

namespace sw::hostile {

namespace {

namespace json = boost::json;

// The value has a depth of up to 512, and stands within the answer.
constexpr std::size_t kJsonDepthMax = 600;
// What is cut says how much was left out.
constexpr std::size_t kNote = 100;

void judge_error(const Outcome& outcome, Complaints& complaints) {
  const bool wants_error =
      outcome.ending != Ending::kCompleted && outcome.ending != Ending::kExited;
  if (outcome.error.has_value() != wants_error) {
    complaints.push_back(outcome.error ? "an error where there is none: " + outcome.error->name
                                       : "no error");
  }
  if (!outcome.error) return;
  const GuestError& error = *outcome.error;
  if (error.name.size() > kErrorLineBytesMax + kNote)
    complaints.emplace_back("a huge name of an error");
  if (error.message.size() > kErrorTextBytesMax + kNote) complaints.emplace_back("a huge message");
  if (error.traceback.size() > kTracebackLinesMax + 1) complaints.emplace_back("a huge traceback");
  const bool by_limit = outcome.ending == Ending::kTimeLimit ||
                        outcome.ending == Ending::kResultLimit ||
                        outcome.ending == Ending::kCancelled;
  if (by_limit && error.name != kExecutionLimitError)
    complaints.push_back("a limit named " + error.name);
  if (outcome.ending == Ending::kCrashed && error.name != kEngineError) {
    complaints.push_back("a crash named " + error.name);
  }
}

void judge_limits(const Plan& plan, const Outcome& outcome, Complaints& complaints) {
  const RunLimits& limits = plan.limits;
  const Usage& usage = outcome.usage;
  if (outcome.ending == Ending::kCancelled && !plan.cancel_after)
    complaints.emplace_back("nobody cancelled it");
  if (outcome.value && outcome.value->text.size() > limits.result_bytes_max)
    complaints.emplace_back("a huge value");
  if (usage.memory_bytes > std::max(limits.memory_bytes_max, plan.image_bytes)) {
    complaints.push_back(fmt::format("{} bytes of memory", usage.memory_bytes));
  }
  if (usage.cpu > cpu_bound(limits)) {
    complaints.push_back(fmt::format("{} of CPU time", std::chrono::duration<double>(usage.cpu)));
  }
  const bool was_early = (limits.wall_max.count() == 0 || usage.wall < limits.wall_max) &&
                         (limits.cpu_max.count() == 0 || usage.cpu < limits.cpu_max);
  if (outcome.ending == Ending::kTimeLimit && was_early &&
      outcome.error->message.find("exit handlers") == std::string::npos) {
    complaints.push_back(
        fmt::format("ended by time after {}, {} of CPU time", usage.wall, usage.cpu));
  }
}

void judge_known(const Known& known, const Outcome& outcome, Complaints& complaints) {
  const std::string_view ending = engine::ending_name(outcome.ending);
  if (ending != known.ending) {
    complaints.push_back(
        fmt::format("ended as {}, not as {}{}", ending, known.ending,
                    outcome.error ? ": " + outcome.error->message.substr(0, 300) : ""));
  } else if (!known.error.empty() && outcome.error->name != known.error) {
    complaints.push_back(fmt::format("the error is {}, not {}", outcome.error->name, known.error));
  } else if (ending == "exited" && outcome.exit_code != known.code) {
    complaints.push_back(
        fmt::format("exited with {}, not {}", outcome.exit_code.value_or(-1), known.code));
  } else if (ending == "completed" && (!outcome.value || outcome.value->text != "42")) {
    complaints.push_back("the value is " +
                         (outcome.value ? outcome.value->text : std::string("none")));
  }
}

}  // namespace

std::chrono::nanoseconds cpu_bound(const RunLimits& limits) {
  std::chrono::nanoseconds limit = std::chrono::nanoseconds::max() / 2;
  if (limits.wall_max.count() != 0) limit = limits.wall_max;
  if (limits.cpu_max.count() != 0) limit = std::min(limit, limits.cpu_max);
  return limit + 3 * limits.grace + kTimeSlack;
}

std::uint64_t memory_bound(const Plan& plan) {
  const RunLimits& limits = plan.limits;
  std::uint64_t bound = limits.memory_bytes_max + kMemorySlack + 8 * limits.output_bytes_max;
  for (const Program& program : plan.programs) {
    // what /workspace and /tmp may hold
    if (program.files) return bound + (std::uint64_t{1} << 30);
  }
  return bound;
}

Complaints judge(const Plan& plan, const Program& program, const Outcome& outcome,
                 std::string_view out, std::string_view err) {
  Complaints complaints;
  judge_error(outcome, complaints);
  judge_limits(plan, outcome, complaints);
  if ((outcome.ending == Ending::kExited) != outcome.exit_code.has_value()) {
    complaints.emplace_back("an exit code belongs to an exit");
  } else if (outcome.exit_code && (*outcome.exit_code < 0 || *outcome.exit_code > 255)) {
    complaints.push_back(fmt::format("exit code {}", *outcome.exit_code));
  }
  if (plan.limits.output_bytes_max != 0 && out.size() + err.size() > plan.limits.output_bytes_max) {
    complaints.push_back(fmt::format("{} bytes of output", out.size() + err.size()));
  }
  if (program.known) judge_known(*program.known, outcome, complaints);
  return complaints;
}

std::optional<std::string> judge_json(std::string_view text) {
  if (text.find('\n') != std::string_view::npos) return "more than one line of JSON";
  if (first_invalid_utf8(text)) return "JSON that is not UTF-8";
  json::error_code problem;
  json::parse_options options;
  options.max_depth = kJsonDepthMax;
  (void)json::parse(text, problem, {}, options);
  if (problem) return "not JSON: " + problem.message();
  return std::nullopt;
}

std::optional<std::string> judge_status(int status, std::string_view line) {
  static const std::map<std::string_view, int> statuses = {
      {"completed", 0},    {"guest-error", 1}, {"result-limit", 1},   {"crashed", 1},
      {"time-limit", 124}, {"cancelled", 130}, {"memory-limit", 137},
  };
  json::parse_options options;
  options.max_depth = kJsonDepthMax;
  const json::object answer = json::parse(line, {}, options).as_object();
  const std::string_view ending = answer.at("ending").as_string();
  const auto known = statuses.find(ending);
  const std::int64_t expected =
      known != statuses.end() ? known->second : answer.at("exitCode").to_number<std::int64_t>();
  if (status == expected) return std::nullopt;
  return fmt::format("exit status {} for the ending {}", status, ending);
}

}  // namespace sw::hostile
