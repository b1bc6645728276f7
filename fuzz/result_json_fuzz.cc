// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// The result that callers get: one line of JSON without a key twice, whatever the guest answered.

#include "engine/result_json.h"

#include <boost/json.hpp>
#include <boost/json/basic_parser_impl.hpp>
#include <set>
#include <vector>

#include "fuzz/fuzz.h"
#include "sandbox_workers/base/utf8.h"
#include "sandbox_workers/engine/language.h"

namespace sw::fuzz {
namespace {

namespace json = boost::json;

/// Notices keys that an object has twice.
struct Keys {
  static constexpr std::size_t max_array_size = SIZE_MAX;
  static constexpr std::size_t max_object_size = SIZE_MAX;
  static constexpr std::size_t max_string_size = SIZE_MAX;
  static constexpr std::size_t max_key_size = SIZE_MAX;
  using Code = json::error_code;
  bool on_document_begin(Code&) { return true; }
  bool on_document_end(Code&) { return true; }
  bool on_array_begin(Code&) { return true; }
  bool on_array_end(std::size_t, Code&) { return true; }
  bool on_object_begin(Code&) {
    objects.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t, Code&) {
    objects.pop_back();
    return true;
  }
  bool on_string_part(json::string_view, std::size_t, Code&) { return true; }
  bool on_string(json::string_view, std::size_t, Code&) { return true; }
  bool on_key_part(json::string_view part, std::size_t, Code&) {
    key += part;
    return true;
  }
  bool on_key(json::string_view part, std::size_t, Code&) {
    key += part;
    twice = twice || !objects.back().insert(key).second;
    key.clear();
    return true;
  }
  bool on_number_part(json::string_view, Code&) { return true; }
  bool on_int64(std::int64_t, json::string_view, Code&) { return true; }
  bool on_uint64(std::uint64_t, json::string_view, Code&) { return true; }
  bool on_double(double, json::string_view, Code&) { return true; }
  bool on_bool(bool, Code&) { return true; }
  bool on_null(Code&) { return true; }
  bool on_comment_part(json::string_view, Code&) { return true; }
  bool on_comment(json::string_view, Code&) { return true; }

  std::vector<std::set<std::string>> objects;
  std::string key;
  bool twice = false;
};

void check_line(std::string_view line) {
  require(line.find_first_of("\r\n") == std::string_view::npos, "it is one line");
  require(!first_invalid_utf8(line), "it is UTF-8");
  json::parse_options options;
  options.max_depth = 1000;
  json::basic_parser<Keys> parser(options);
  json::error_code error;
  const std::size_t used = parser.write_some(false, line.data(), line.size(), error);
  require(!error && used == line.size(), "it is JSON", line);
  require(!parser.handler().twice, "no object has a key twice", line);
}

Outcome any_outcome(Choices& choices) {
  Outcome outcome;
  outcome.ending = static_cast<Ending>(choices.below(8));
  if (choices.coin()) outcome.exit_code = static_cast<std::int32_t>(choices.number(4));
  outcome.usage.wall =
      std::chrono::nanoseconds(static_cast<std::int64_t>(choices.any_number() >> 8U));
  outcome.usage.cpu =
      std::chrono::nanoseconds(static_cast<std::int64_t>(choices.any_number() >> 8U));
  outcome.usage.memory_bytes = choices.any_number();
  outcome.usage.output_truncated = choices.coin();
  if (choices.coin()) {
    outcome.error = GuestError{.name = choices.text(40), .message = choices.text(40)};
    for (std::size_t i = choices.below(3); i > 0; --i)
      outcome.error->traceback.push_back(choices.text(40));
    if (choices.coin())
      outcome.error->line_number = static_cast<std::int64_t>(choices.any_number());
  }
  return outcome;
}

std::optional<ContextRun> any_context(Choices& choices) {
  if (!choices.coin()) return std::nullopt;
  ContextRun context{.id = to_valid_utf8(choices.text(20)), .executions = choices.any_number()};
  static constexpr ContextState kStates[] = {ContextState::kLive, ContextState::kRestored,
                                             ContextState::kFresh};
  context.state = kStates[choices.below(3)];
  if (choices.coin()) context.note = choices.text(20);
  if (choices.coin()) context.snapshot_bytes_written = choices.any_number();
  if (choices.coin()) context.snapshot_ms = static_cast<double>(choices.any_number());
  return context;
}

engine::ResultExtras any_extras(Choices& choices) {
  engine::ResultExtras extras;
  if (choices.coin()) extras.expires_at_ms = static_cast<std::int64_t>(choices.any_number());
  if (choices.coin()) {
    extras.files = WriteBackReport{.written = choices.below(9),
                                   .refused = {choices.text(20)},
                                   .left = {choices.text(20)},
                                   .error = choices.text(20)};
  }
  return extras;
}

}  // namespace

SW_FUZZ(result_json) {
  Choices choices(input);
  Outcome outcome = any_outcome(choices);
  outcome.context = any_context(choices);
  outcome.cwd = choices.text(20);
  outcome.out = choices.text(60);
  outcome.err = choices.text(60);
  const engine::ResultExtras extras = any_extras(choices);
  Run request;
  request.code = choices.text(60);
  request.limits.cpu_max =
      std::chrono::nanoseconds(static_cast<std::int64_t>(choices.any_number() >> 8U));
  // The value comes as it comes from a driver.
  const std::string answer = choices.rest_text();
  if (auto reply = engine::parse_reply(answer); reply.ok()) outcome.value = std::move(reply->value);
  check_line(engine::execution_result_json("fuzz", "Fuzz 1", request, outcome, extras));
}

}  // namespace sw::fuzz
