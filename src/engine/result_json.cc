// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/result_json.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "engine/json_text.h"
#include "sandbox_workers/base/utf8.h"

namespace sw::engine {

namespace {

namespace json = boost::json;

/// One entry per line, without the line feed.
json::array lines(std::string_view text) {
  json::array result;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    result.emplace_back(to_valid_utf8(text.substr(0, end)));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return result;
}

json::array texts(const std::vector<std::string>& items) {
  json::array result;
  for (const std::string& item : items) result.emplace_back(to_valid_utf8(item));
  return result;
}

json::object error_object(const GuestError& error) {
  json::object object = {{"name", to_valid_utf8(error.name)},
                         {"message", to_valid_utf8(error.message)},
                         {"traceback", texts(error.traceback)}};
  if (error.line_number) object["lineNumber"] = *error.line_number;
  return object;
}

/// Boost.JSON writes 0.4 as 4E-1, which is right and hard to read, so what has fractions is written
/// here.
std::string milliseconds(std::chrono::nanoseconds time) {
  return fmt::format("{:.3f}", std::chrono::duration<double, std::milli>(time).count());
}

std::string usage_text(const Run& request, const Usage& usage) {
  using Micro = std::chrono::microseconds;
  return fmt::format(
      R"({{"fuelConsumed":{},"fuelLimit":{},"memoryBytes":{},"wallMs":{},"cpuMs":{},"pagesWritten":{},"outputTruncated":{}}})",
      std::chrono::ceil<Micro>(usage.cpu).count(),
      std::chrono::ceil<Micro>(request.limits.cpu_max).count(), usage.memory_bytes,
      milliseconds(usage.wall), milliseconds(usage.cpu), usage.pages_written,
      usage.output_truncated);
}

std::string context_text(const Outcome& outcome, std::optional<std::int64_t> expires_at_ms) {
  const ContextRun& context = *outcome.context;
  json::object object = {{"id", context.id},
                         {"cwd", to_valid_utf8(outcome.cwd)},
                         {"executions", context.executions},
                         {"state", context_state_name(context.state)}};
  if (!context.note.empty()) object["note"] = to_valid_utf8(context.note);
  if (context.snapshot_ms) object["savedBytes"] = context.snapshot_bytes_written;
  if (expires_at_ms) object["expiresAt"] = *expires_at_ms;
  std::string text = json::serialize(object);
  if (context.snapshot_ms) {
    text.insert(text.size() - 1, fmt::format(",\"snapshotMs\":{:.3f}", *context.snapshot_ms));
  }
  return text;
}

json::object write_back_object(const WriteBackReport& files) {
  json::object object = {{"written", files.written}, {"refused", texts(files.refused)}};
  if (!files.left.empty()) object["left"] = texts(files.left);
  if (!files.error.empty()) object["error"] = to_valid_utf8(files.error);
  return object;
}

/// A value's JSON becomes part of ours, so it must be JSON whatever the engine says. It goes in as
/// text: a DOM would lose digits of large numbers.
std::string results_text(const Outcome& outcome) {
  if (!outcome.value || outcome.error) return "[]";
  if (outcome.value->kind == Value::Kind::kJson) {
    if (const auto value = normal_json(outcome.value->text))
      return fmt::format("[{{\"json\":{}}}]", *value);
  }
  return fmt::format("[{{\"text\":{}}}]",
                     json::serialize(json::string(to_valid_utf8(outcome.value->text))));
}

}  // namespace

std::string_view ending_name(Ending ending) {
  switch (ending) {
    case Ending::kCompleted: return "completed";
    case Ending::kGuestError: return "guest-error";
    case Ending::kExited: return "exited";
    case Ending::kTimeLimit: return "time-limit";
    case Ending::kMemoryLimit: return "memory-limit";
    case Ending::kResultLimit: return "result-limit";
    case Ending::kCancelled: return "cancelled";
    case Ending::kCrashed: return "crashed";
  }
  return "unknown";
}

std::string_view context_state_name(ContextState state) {
  switch (state) {
    case ContextState::kLive: return "live";
    case ContextState::kRestored: return "restored";
    case ContextState::kFresh: return "fresh";
  }
  return "fresh";
}

std::string execution_result_json(std::string_view language, std::string_view engine,
                                  const Run& run, const Outcome& outcome,
                                  const ResultExtras& extras) {
  json::object object = {
      {"code", to_valid_utf8(run.code)},
      {"language", language},
      {"engine", engine},
      {"logs", {{"stdout", lines(outcome.out)}, {"stderr", lines(outcome.err)}}}};
  if (outcome.error) object["error"] = error_object(*outcome.error);
  object["ending"] = ending_name(outcome.ending);
  if (outcome.exit_code) object["exitCode"] = *outcome.exit_code;
  if (outcome.context) object["executionCount"] = outcome.context->executions;
  if (extras.files) object["writeBack"] = write_back_object(*extras.files);
  std::string text = json::serialize(object);
  if (outcome.context) {
    text.insert(text.size() - 1,
                fmt::format(",\"context\":{}", context_text(outcome, extras.expires_at_ms)));
  }
  text.insert(text.size() - 1, fmt::format(",\"durationMs\":{},\"usage\":{},\"results\":{}",
                                           milliseconds(outcome.usage.wall),
                                           usage_text(run, outcome.usage), results_text(outcome)));
  return with_escaped_line_ends(std::move(text));
}

}  // namespace sw::engine
