// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What drivers answer, and what becomes of a value on its way to the caller.

#include <boost/json.hpp>

#include "engine/javascript/answers.h"
#include "engine/javascript/text.h"
#include "engine/json_text.h"
#include "fuzz/fuzz.h"
#include "sandbox_workers/base/utf8.h"
#include "sandbox_workers/engine/language.h"

namespace sw::fuzz {
namespace {

namespace json = boost::json;

/// Is it JSON to a parser that builds values, as readers of our answers have?
bool parses(std::string_view text) {
  json::error_code error;
  json::parse_options options;
  options.max_depth = 600;
  json::parse(text, error, {}, options);
  return !error;
}

void check_json(std::string_view text) {
  const auto printed = engine::normal_json(text);
  if (!printed) return;
  require(parses(*printed), "what is taken for JSON is JSON", *printed);
  require(printed->find_first_of("\n\r") == std::string::npos, "it is one line", *printed);
  require(engine::normal_json(*printed) == printed, "once is enough", *printed);
}

void check_text(const std::string& text) {
  const std::string without = engine::javascript::without_lone_surrogates(text);
  require(without.size() == text.size(), "surrogates are replaced in place");
  if (!first_invalid_utf8(text)) require(without == text, "valid text stays as it is");
  std::string escaped;
  engine::javascript::append_escaped(escaped, text);
  require(escaped.size() >= text.size(), "nothing of it is lost");
}

/// JavaScript's driver has forms of its own for the parts of an answer.
void check_parts(const std::string& text) {
  using namespace engine::javascript;
  constexpr std::size_t kBytesMax = 100;
  if (const auto stripped = parse_stripped(text); stripped.ok()) {
    require(stripped->line >= 0 && text.ends_with(stripped->text),
            "TypeScript's answer is part of it");
  }
  if (const auto shown = parse_shown(text, kBytesMax); shown.ok()) {
    require(shown->text.size() < kBytesMax && text.ends_with(shown->text),
            "a value is part of it, within its limit");
  }
  if (const auto error = parse_error(text); error.ok()) {
    require(!first_invalid_utf8(error->name) && !first_invalid_utf8(error->message),
            "errors are UTF-8");
  }
}

}  // namespace

SW_FUZZ(reply) {
  const std::string_view text = as_text(input);
  const auto reply = engine::parse_reply(std::string(text));
  if (reply.ok()) {
    if (reply->value) {
      require(reply->value->text.size() <= text.size(), "a value is no longer than the answer");
      if (reply->value->kind == Value::Kind::kJson)
        require(parses(reply->value->text), "a JSON value is JSON");
    }
    if (reply->exit_code)
      require(*reply->exit_code >= 0 && *reply->exit_code <= 255, "a status is a byte");
    if (reply->error) {
      require(!first_invalid_utf8(reply->error->name) && !first_invalid_utf8(reply->error->message),
              "errors are UTF-8");
    }
  } else {
    require(reply.error().code == ErrorCode::kCorrupt, "nonsense is told");
  }
  check_json(text);
  check_text(std::string(text));
  check_parts(std::string(text));
}

}  // namespace sw::fuzz
