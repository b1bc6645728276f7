// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/javascript/answers.h"

#include <gtest/gtest.h>

#include <string>

namespace sw::engine::javascript {
namespace {

using namespace std::string_literals;

template <class T>
bool is_corrupt(const Result<T>& result) {
  return !result.ok() && result.error().code == ErrorCode::kCorrupt;
}

TEST(JavaScriptAnswers, WhatBecomesOfTypeScript) {
  EXPECT_EQ(parse_stripped("=").value().text, "");
  EXPECT_EQ(parse_stripped("=a:b").value().text, "a:b");
  EXPECT_EQ(parse_stripped("=a:b").value().kind, Stripped::Kind::kJavaScript);
  const Stripped unsupported = parse_stripped("!12:no: decorators").value();
  EXPECT_EQ(unsupported.kind, Stripped::Kind::kUnsupported);
  EXPECT_EQ(unsupported.line, 12);
  EXPECT_EQ(unsupported.text, "no: decorators");
  EXPECT_EQ(parse_stripped("?0:").value().kind, Stripped::Kind::kInvalid);
  EXPECT_EQ(parse_stripped("&3:ends too early").value().line, 3);
}

TEST(JavaScriptAnswers, NoOtherAnswerAboutTypeScriptIsTaken) {
  for (const std::string& answer :
       {""s, ":"s, "::"s, "!"s, "?"s, "!:"s, "?:why"s, "!12"s, "!-1:why"s, "!+1:why"s, "! 1:why"s,
        "!1 :why"s, "!1x:why"s, "!0x1:why"s, "!99999999999999999999:why"s, "x1:why"s, "\0=x"s,
        "!\0:why"s, "\xED\xA0\x80:"s}) {
    EXPECT_TRUE(is_corrupt(parse_stripped(answer))) << answer;
  }
}

TEST(JavaScriptAnswers, HowAValueIsShown) {
  constexpr std::size_t kMax = 10;
  EXPECT_EQ(parse_shown("t", kMax).value().text, "");
  EXPECT_EQ(parse_shown("tab", kMax).value().text, "ab");
  EXPECT_EQ(parse_shown("tab", kMax).value().kind, Shown::Kind::kText);
  EXPECT_EQ(parse_shown("j[1]", kMax).value().kind, Shown::Kind::kJson);
  EXPECT_EQ(parse_shown("l", kMax).value().kind, Shown::Kind::kTooLong);
  EXPECT_EQ(parse_shown("t"s + std::string(8, 'x'), kMax).value().text, std::string(8, 'x'));
  EXPECT_EQ(parse_shown("t"s + std::string(9, 'x'), kMax).value().kind, Shown::Kind::kTooLong);
  EXPECT_EQ(parse_shown("t\0\xED\xA0\x80"s, kMax).value().text, "\0\xED\xA0\x80"s);
}

TEST(JavaScriptAnswers, NoOtherAnswerAboutAValueIsTaken) {
  for (const std::string& answer : {""s, "x"s, "\0t"s, " t"s, "T"s}) {
    EXPECT_TRUE(is_corrupt(parse_shown(answer, 100))) << answer;
  }
}

TEST(JavaScriptAnswers, TheErrorOfAReply) {
  const GuestError error =
      parse_error(R"({"name":"N","message":"\ud800 \u0000","traceback":["a","b"],"lineNumber":3})")
          .value();
  EXPECT_EQ(error.name, "N");
  EXPECT_EQ(error.message, "\xEF\xBF\xBD \0"s);
  EXPECT_EQ(error.traceback, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(error.line_number, 3);
  EXPECT_FALSE(parse_error(R"({"name":"","message":""})").value().line_number.has_value());
}

TEST(JavaScriptAnswers, NoOtherErrorIsTaken) {
  for (const std::string& json :
       {""s, "null"s, "[]"s, "{}"s, "{\"name\":\"N\"}"s, "{\"name\":1,\"message\":\"\"}"s,
        "{\"name\":\"N\",\"message\":\"\",\"traceback\":[1]}"s,
        "{\"name\":\"N\",\"message\":\"\",\"lineNumber\":\"1\"}"s,
        "{\"name\":\"N\",\"message\":\"\",\"lineNumber\":1.5}"s,
        "{\"name\":\"N\",\"message\":\"\",\"lineNumber\":1e99}"s,
        "{\"name\":\"N\",\"message\":\"\"},\"exit\":1"s + "}"s,
        "{\"name\":\"N\",\"message\":\"\xED\xA0\x80\"}"s, "{\"name\":\"N\",\"message\":\"\"}\n"s,
        "null}\nvalue"s}) {
    EXPECT_TRUE(is_corrupt(parse_error(json))) << json;
  }
}

}  // namespace
}  // namespace sw::engine::javascript
