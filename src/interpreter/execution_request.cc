// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "interpreter/execution_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string/case_conv.hpp>
#include <boost/algorithm/string/predicate.hpp>
#include <boost/json.hpp>

#include "protocol/messages.h"

namespace sw::interpreter {

using protocol::Request;

namespace {

namespace json = boost::json;

bool is_env_name(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && letter(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

using EnvVars = std::vector<std::pair<std::string, std::string>>;

/// Null values are skipped; then names that cannot be are dropped.
Result<EnvVars> env_vars_of(const json::object& body) {
  const json::value* const given = body.if_contains("envVars");
  if (!given) return EnvVars();
  if (!given->is_object()) return protocol::refusal("envVars must be an object");
  EnvVars env;
  for (const auto& [name, value] : given->get_object()) {
    if (value.is_null()) continue;
    if (!value.is_string()) return protocol::refusal("envVars values must be strings");
    if (is_env_name(name)) env.emplace_back(std::string(name), std::string(value.get_string()));
  }
  return env;
}

/// Whether a `language` in a request means this engine's.
bool is_language_of(const engine::EngineInfo& info, std::string_view name) {
  const std::string lower = boost::algorithm::to_lower_copy(std::string(name));
  return lower == info.language || std::ranges::find(info.aliases, lower) != info.aliases.end();
}

/// Stdin and arguments, which this project adds to the protocol's request.
Result<void> read_extras(const json::object& body, Run& request) {
  if (const json::value* input = body.if_contains("stdin")) {
    if (!input->is_string()) return protocol::refusal("stdin must be a string");
    request.input = text_input(std::string(input->get_string()));
  }
  if (const json::value* given = body.if_contains("args")) {
    if (!given->is_array()) return protocol::refusal("args must be an array of strings");
    for (const json::value& arg : given->get_array()) {
      if (!arg.is_string()) return protocol::refusal("args must be an array of strings");
      request.args.emplace_back(arg.get_string());
    }
  }
  return {};
}

}  // namespace

Result<Run> read_execution_request(const Request& http, const engine::EngineInfo& info) {
  const auto type = protocol::find_header(http.headers, "content-type");
  if (!type || !boost::algorithm::istarts_with(*type, "application/json")) {
    return Error{ErrorCode::kUnsupportedMediaType, "Content-Type must be application/json", 0};
  }
  auto parsed = protocol::read_object(http, info.limits.request_bytes);
  if (!parsed.ok()) {
    const bool nothing_there =
        http.body.empty() && parsed.error().code == ErrorCode::kInvalidArgument;
    return nothing_there ? protocol::refusal("JSON body required") : std::move(parsed).error();
  }
  const json::object& body = *parsed;
  if (body.contains("input")) {
    return protocol::refusal("input is no longer supported; pass data with envVars");
  }
  Run request;
  if (const json::value* language = body.if_contains("language")) {
    if (!language->is_string()) return protocol::refusal("language must be a string");
    if (!is_language_of(info, language->get_string())) {
      return protocol::refusal(fmt::format("Unsupported language '{}' on this runtime ({})",
                                           std::string_view(language->get_string()),
                                           info.language));
    }
    request.language = language->get_string();
  }
  if (const json::value* code = body.if_contains("code"); code && code->is_string()) {
    request.code = code->get_string();
  }
  SW_CHECK_OK(protocol::check_code(request.code, info.limits.code_bytes));
  SW_TRY(request.env, env_vars_of(body));
  SW_CHECK_OK(read_extras(body, request));
  SW_CHECK_OK(validate(request));
  return request;
}

}  // namespace sw::interpreter
