// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/records.h"
#include "base/describe.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "protocol/messages.h"
#include "sandbox_workers/base/utf8.h"
#include "sandbox_workers/protocol/profile.h"

namespace sw::sandbox {

namespace {

namespace json = boost::json;

constexpr int kVersion = 1;

json::object to_json(const Env& env) {
  json::object object;
  for (const auto& [name, value] : env) object[name] = value;
  return object;
}

Env env_of(const json::value& value) {
  Env env;
  for (const auto& [name, text] : value.as_object())
    env.emplace(name, json::value_to<std::string>(text));
  return env;
}

Bytes encoded(const json::object& object) {
  const std::string text = json::serialize(object);
  const BytesView bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

/// Runs `read` on a record's JSON; what it throws is damage.
template <class T, class F>
Result<T> decoded(std::string_view what, BytesView bytes, F read) {
  try {
    const json::value value = json::parse(as_text(bytes));
    const json::object& object = value.as_object();
    if (object.at("v").to_number<int>() != kVersion) {
      return Error{ErrorCode::kCorrupt, fmt::format("{} has an unknown version", what), 0};
    }
    return read(object);
  } catch (const std::exception& problem) {
    return Error{ErrorCode::kCorrupt, fmt::format("{} is damaged: {}", what, describe(problem)), 0};
  }
}

void put_durability(json::object& object, const std::optional<Durability>& durability) {
  if (durability) object["durability"] = protocol::durability_name(*durability);
}

std::optional<Durability> durability_of(const json::object& object) {
  const json::value* const name = object.if_contains("durability");
  return name ? protocol::parse_durability(json::value_to<std::string>(*name)) : std::nullopt;
}

}  // namespace

void apply(Env& env, const EnvChanges& changes) {
  for (const auto& [name, value] : changes) {
    if (value) env[name] = *value;
    else env.erase(name);
  }
}

Bytes encode(const SandboxRecord& record) {
  json::object object{{"v", kVersion},
                      {"createdAt", record.created_ms},
                      {"lastUsed", record.last_used_ms},
                      {"envVars", to_json(record.env)}};
  put_durability(object, record.durability);
  return encoded(object);
}

Result<SandboxRecord> decode_sandbox_record(BytesView bytes) {
  return decoded<SandboxRecord>("the sandbox's record", bytes, [](const json::object& object) {
    return SandboxRecord{.created_ms = object.at("createdAt").to_number<std::int64_t>(),
                         .last_used_ms = object.at("lastUsed").to_number<std::int64_t>(),
                         .env = env_of(object.at("envVars")),
                         .durability = durability_of(object)};
  });
}

Bytes encode(const ContextRecord& record) {
  json::object object = {{"v", kVersion},
                         {"number", record.number},
                         {"binding", record.binding},
                         {"language", record.language},
                         {"engine", record.engine},
                         {"cwd", record.cwd},
                         {"envVars", to_json(record.env)},
                         {"createdAt", record.created_ms},
                         {"lastUsed", record.last_used_ms},
                         {"executions", record.executions}};
  if (record.interpreter_executions)
    object["interpreterExecutions"] = *record.interpreter_executions;
  if (record.snapshot) object["snapshot"] = protocol::to_json(*record.snapshot);
  put_durability(object, record.durability);
  return encoded(object);
}

Result<ContextRecord> decode_context_record(std::string_view id, BytesView bytes) {
  // It goes into answers, which are JSON.
  if (first_invalid_utf8(id))
    return Error{ErrorCode::kCorrupt, "the id of a context is damaged", 0};
  return decoded<ContextRecord>(
      fmt::format("the record of the context '{}'", id), bytes, [&](const json::object& object) {
        const auto text = [&](const char* key) {
          return json::value_to<std::string>(object.at(key));
        };
        ContextRecord record{.id = std::string(id),
                             .number = object.at("number").to_number<std::uint64_t>(),
                             .binding = text("binding"),
                             .language = text("language"),
                             .engine = text("engine"),
                             .cwd = text("cwd"),
                             .env = env_of(object.at("envVars")),
                             .created_ms = object.at("createdAt").to_number<std::int64_t>(),
                             .last_used_ms = object.at("lastUsed").to_number<std::int64_t>(),
                             .executions = object.at("executions").to_number<std::uint64_t>(),
                             .interpreter_executions = {},
                             .snapshot = {},
                             .durability = durability_of(object)};
        if (const json::value* count = object.if_contains("interpreterExecutions")) {
          record.interpreter_executions = count->to_number<std::uint64_t>();
        }
        if (const json::value* snapshot = object.if_contains("snapshot")) {
          record.snapshot = protocol::parse_snapshot(*snapshot);
        }
        return record;
      });
}

}  // namespace sw::sandbox
