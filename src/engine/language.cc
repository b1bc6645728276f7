// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/language.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "engine/embedded_files.h"

namespace sw::engine {

namespace {

namespace json = boost::json;

const json::value* present(const json::object& object, std::string_view key) {
  const json::value* found = object.if_contains(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

GuestError to_error(const json::object& object) {
  GuestError error{.name = json::value_to<std::string>(object.at("name")),
                   .message = json::value_to<std::string>(object.at("message")),
                   .traceback = {},
                   .line_number = std::nullopt};
  if (const auto* lines = present(object, "traceback")) error.traceback = json::value_to<std::vector<std::string>>(*lines);
  if (const auto* line = present(object, "lineNumber")) error.line_number = line->to_number<std::int64_t>();
  return error;
}

Reply to_reply(const json::object& object, std::string_view body) {
  Reply reply;
  if (const auto* kind = present(object, "value")) {
    const bool is_json = kind->as_string() == "json";
    reply.value = Value{is_json ? Value::Kind::kJson : Value::Kind::kText, std::string(body)};
  }
  if (const auto* error = present(object, "error")) reply.error = to_error(error->as_object());
  if (const auto* exit = present(object, "exit")) {
    // What a process can report: the low byte, as a shell shows it.
    reply.exit_code = static_cast<std::int32_t>(exit->to_number<std::int64_t>() & 0xFF);
  }
  if (const auto* cwd = present(object, "cwd")) reply.cwd = json::value_to<std::string>(*cwd);
  return reply;
}

}  // namespace

Guest::Guest(std::shared_ptr<const wasi::Layout> layout, const wasi::Clocks& clocks)
    : wasi_(std::move(layout), clocks) {}

Result<Reply> parse_reply(std::string_view answer) {
  const std::size_t end = std::min(answer.find('\n'), answer.size());
  const std::string_view body = end < answer.size() ? answer.substr(end + 1) : std::string_view{};
  try {
    return to_reply(json::parse(answer.substr(0, end)).as_object(), body);
  } catch (const std::exception& problem) {
    return Error{ErrorCode::kCorrupt, fmt::format("the guest's driver answered nonsense: {}", problem.what()), 0};
  }
}

Result<std::vector<std::pair<std::string, std::string_view>>> driver_files(const Manifest& manifest) {
  std::vector<std::pair<std::string, std::string_view>> files;
  for (const std::string& name : manifest.drivers) {
    const auto content = find_embedded_file(fmt::format("{}/{}", manifest.language, name));
    if (!content) {
      return Error{ErrorCode::kInternal, fmt::format("the driver {}/{} is not embedded", manifest.language, name), 0};
    }
    files.emplace_back(name, *content);
  }
  return files;
}

}  // namespace sw::engine
