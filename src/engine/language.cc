// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/engine/language.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <boost/json/basic_parser_impl.hpp>

namespace sw::engine {

namespace {

namespace json = boost::json;

/// The parser's callbacks for when only validity is asked.
struct IgnoreAll {
  static constexpr std::size_t max_array_size = SIZE_MAX;
  static constexpr std::size_t max_object_size = SIZE_MAX;
  static constexpr std::size_t max_string_size = SIZE_MAX;
  static constexpr std::size_t max_key_size = SIZE_MAX;
  using Code = json::error_code;
  bool on_document_begin(Code&) { return true; }
  bool on_document_end(Code&) { return true; }
  bool on_array_begin(Code&) { return true; }
  bool on_array_end(std::size_t, Code&) { return true; }
  bool on_object_begin(Code&) { return true; }
  bool on_object_end(std::size_t, Code&) { return true; }
  bool on_string_part(json::string_view, std::size_t, Code&) { return true; }
  bool on_string(json::string_view, std::size_t, Code&) { return true; }
  bool on_key_part(json::string_view, std::size_t, Code&) { return true; }
  bool on_key(json::string_view, std::size_t, Code&) { return true; }
  bool on_number_part(json::string_view, Code&) { return true; }
  bool on_int64(std::int64_t, json::string_view, Code&) { return true; }
  bool on_uint64(std::uint64_t, json::string_view, Code&) { return true; }
  bool on_double(double, json::string_view, Code&) { return true; }
  bool on_bool(bool, Code&) { return true; }
  bool on_null(Code&) { return true; }
  bool on_comment_part(json::string_view, Code&) { return true; }
  bool on_comment(json::string_view, Code&) { return true; }
};

// Deep enough for real data; a value nested deeper is shown as text, so that no reader's stack is at risk.
constexpr std::size_t kJsonDepthMax = 512;

const json::value* present(const json::object& object, std::string_view key) {
  const json::value* found = object.if_contains(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

GuestError to_error(const json::object& object) {
  GuestError error{.name = json::value_to<std::string>(object.at("name")),
                   .message = json::value_to<std::string>(object.at("message")),
                   .traceback = {},
                   .line_number = std::nullopt};
  if (const auto* lines = present(object, "traceback"))
    error.traceback = json::value_to<std::vector<std::string>>(*lines);
  if (const auto* line = present(object, "lineNumber")) error.line_number = line->to_number<std::int64_t>();
  return error;
}

Reply to_reply(const json::object& object, std::string_view body) {
  Reply reply;
  if (const auto* kind = present(object, "value")) {
    const bool as_json = kind->as_string() == "json" && is_plain_json(body);
    reply.value = Value{as_json ? Value::Kind::kJson : Value::Kind::kText, std::string(body)};
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
    : wasi_(std::move(layout), clocks, {.keep_preopens = true}) {}

Result<Bytes> Language::read_module(const std::filesystem::path& package) const {
  return read_file(package / manifest_.module);
}

// A value's text goes into answers as it is, so it must be one JSON value whatever the guest says.
bool is_plain_json(std::string_view text) {
  json::parse_options options;
  options.max_depth = kJsonDepthMax;
  json::basic_parser<IgnoreAll> parser(options);
  json::error_code error;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), error);
  return !error && used == text.size();
}

Result<Reply> parse_reply(std::string_view answer) {
  const std::size_t end = std::min(answer.find('\n'), answer.size());
  if (end > kReplyHeadBytesMax) return Error{ErrorCode::kCorrupt, "its driver answered too much", 0};
  const std::string_view body = end < answer.size() ? answer.substr(end + 1) : std::string_view{};
  try {
    return to_reply(json::parse(answer.substr(0, end)).as_object(), body);
  } catch (const std::exception&) {
    return Error{ErrorCode::kCorrupt, "its driver answered nonsense", 0};
  }
}

}  // namespace sw::engine
