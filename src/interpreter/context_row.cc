// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "interpreter/context_row.h"

#include <fmt/format.h>

#include <boost/json.hpp>

namespace sw::interpreter {

namespace {

namespace json = boost::json;

constexpr int kVersion = 1;

}  // namespace

Bytes encode(const ContextRow& row) {
  json::object object = {{"v", kVersion},
                         {"cwd", row.cwd},
                         {"createdAt", row.created_ms},
                         {"lastUsed", row.last_used_ms},
                         {"executions", row.executions},
                         {"savedAt", row.saved_ms}};
  if (row.saved_execution) object["savedExecution"] = *row.saved_execution;
  const std::string text = json::serialize(object);
  const BytesView bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

Result<ContextRow> decode_context_row(BytesView bytes) {
  try {
    const json::value value = json::parse(as_text(bytes));
    const json::object& object = value.as_object();
    if (object.at("v").to_number<int>() != kVersion) {
      return Error{ErrorCode::kCorrupt, "a context was written by another version of this program", 0};
    }
    ContextRow row;
    row.cwd = json::value_to<std::string>(object.at("cwd"));
    row.created_ms = object.at("createdAt").to_number<std::int64_t>();
    row.last_used_ms = object.at("lastUsed").to_number<std::int64_t>();
    row.executions = object.at("executions").to_number<std::uint64_t>();
    row.saved_ms = object.at("savedAt").to_number<std::int64_t>();
    if (const json::value* saved = object.if_contains("savedExecution")) {
      row.saved_execution = saved->to_number<std::uint64_t>();
    }
    return row;
  } catch (const std::exception& problem) {
    return Error{ErrorCode::kCorrupt, fmt::format("a context's row is damaged: {}", problem.what()), 0};
  }
}

}  // namespace sw::interpreter
