// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "interpreter/context_row.h"
#include "base/describe.h"

#include <fmt/format.h>

#include <boost/json.hpp>

namespace sw::interpreter {

namespace {

namespace json = boost::json;

constexpr int kVersion = 1;

void put_saved(json::object& object, const std::optional<std::uint64_t>& execution) {
  if (execution) object["savedExecution"] = *execution;
}

std::optional<std::uint64_t> saved_of(const json::object& object) {
  const json::value* saved = object.if_contains("savedExecution");
  return saved ? std::optional(saved->to_number<std::uint64_t>()) : std::nullopt;
}

}  // namespace

Bytes encode(const ContextRow& row) {
  json::object object = {{"v", kVersion},
                         {"cwd", row.cwd},
                         {"createdAt", row.created_ms},
                         {"lastUsed", row.last_used_ms},
                         {"executions", row.executions},
                         {"savedAt", row.saved_ms}};
  put_saved(object, row.saved_execution);
  if (row.before) {
    json::object before = {{"cwd", row.before->cwd}};
    put_saved(before, row.before->saved_execution);
    if (row.before->rolled_back) before["rolledBack"] = true;
    object["before"] = std::move(before);
  }
  const std::string text = json::serialize(object);
  const BytesView bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

Result<ContextRow> decode_context_row(BytesView bytes) {
  try {
    const json::value value = json::parse(as_text(bytes));
    const json::object& object = value.as_object();
    if (object.at("v").to_number<int>() != kVersion) {
      return Error{ErrorCode::kCorrupt, "a context was written by another version of this program",
                   0};
    }
    ContextRow row;
    row.cwd = json::value_to<std::string>(object.at("cwd"));
    row.created_ms = object.at("createdAt").to_number<std::int64_t>();
    row.last_used_ms = object.at("lastUsed").to_number<std::int64_t>();
    row.executions = object.at("executions").to_number<std::uint64_t>();
    row.saved_ms = object.at("savedAt").to_number<std::int64_t>();
    row.saved_execution = saved_of(object);
    if (const json::value* before = object.if_contains("before")) {
      const json::object& fields = before->as_object();
      row.before = ContextRow::Before{.cwd = json::value_to<std::string>(fields.at("cwd")),
                                      .saved_execution = saved_of(fields),
                                      .rolled_back = fields.contains("rolledBack")};
    }
    return row;
  } catch (const std::exception& problem) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("a context's row is damaged: {}", describe(problem)), 0};
  }
}

}  // namespace sw::interpreter
