// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// parse_reply: what drivers answer, and what they might.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sandbox_workers/engine/language.h"

namespace sw::engine {
namespace {

using ::testing::ElementsAre;

TEST(Reply, HasAValueInItsOwnWords) {
  const Reply reply =
      parse_reply("{\"value\":\"json\",\"cwd\":\"/tmp\"}\n{\"n\":123456789012345678901234567890}")
          .value();
  EXPECT_EQ(reply.value->kind, Value::Kind::kJson);
  EXPECT_EQ(reply.value->text, "{\"n\":123456789012345678901234567890}");
  EXPECT_EQ(reply.cwd, "/tmp");
  EXPECT_FALSE(reply.error || reply.exit_code);
}

TEST(Reply, TextMayHoldLineFeedsAndNuls) {
  using namespace std::string_literals;
  EXPECT_EQ(parse_reply("{\"value\":\"text\"}\na\nb\0c"s).value().value->text, "a\nb\0c"s);
}

TEST(Reply, WhatCallsItselfJsonAndIsNotBecomesText) {
  for (const char* body :
       {"", "{", "1,2", "{\"a\":1}}", "NaN", "\"\xff\"", "[1] [2]", "{\"a\":1,\"a\":2}", "01"}) {
    const Reply reply = parse_reply(std::string("{\"value\":\"json\"}\n") + body).value();
    EXPECT_EQ(reply.value->kind, Value::Kind::kText) << body;
  }
  EXPECT_EQ(parse_reply("{\"value\":\"json\"}\n" + std::string(100'000, '[')).value().value->kind,
            Value::Kind::kText);
}

TEST(Reply, HasAnErrorWithItsLine) {
  const Reply reply =
      parse_reply(
          R"({"error":{"name":"E","message":"m","traceback":["a","b"],"lineNumber":3},"exit":null})")
          .value();
  EXPECT_EQ(reply.error->name, "E");
  EXPECT_THAT(reply.error->traceback, ElementsAre("a", "b"));
  EXPECT_EQ(reply.error->line_number, 3);
}

TEST(Reply, ExitCodesAreBytes) { EXPECT_EQ(parse_reply("{\"exit\":-1}").value().exit_code, 255); }

TEST(Reply, MoreThanAnErrorCanHoldIsNotEvenRead) {
  std::string answer = "{\"exit\":1}";
  EXPECT_TRUE(parse_reply(answer).ok());
  answer.insert(1, kReplyHeadBytesMax, ' ');
  EXPECT_EQ(parse_reply(answer).error().code, ErrorCode::kCorrupt);
}

TEST(Reply, NonsenseOfAHostileGuestIsAnError) {
  for (const char* answer :
       {"", "x", "[]", "{\"error\":1}", "{\"error\":{}}", "{\"exit\":\"1\"}", "{\"value\":1}",
        "{\"cwd\":[]}", "{\"exit\":1e300}", "{\"exit\":NaN}", "{\"exit\":1.5}", "{} {}",
        "{\"error\":{\"name\":\"E\",\"message\":\"\",\"lineNumber\":1e99}}",
        "{\"error\":{\"name\":\"E\",\"message\":\"\",\"lineNumber\":99999999999999999999}}",
        "{\"error\":{\"name\":\"E\",\"message\":\"\",\"traceback\":\"x\"}}",
        "{\"error\":{\"name\":\"E\",\"message\":\"\",\"traceback\":[1]}}"}) {
    EXPECT_EQ(parse_reply(answer).error().code, ErrorCode::kCorrupt) << answer;
  }
}

TEST(Reply, AValueIsPrintedAgain) {
  EXPECT_EQ(parse_reply("{\"value\":\"json\"}\n[1,\n2\n]").value().value->text, "[1,2]");
}

TEST(Reply, FoldersAndLinesThatCannotBeAreIgnored) {
  EXPECT_EQ(parse_reply(R"({"cwd":"/workspace/a"})").value().cwd, "/workspace/a");
  for (const char* cwd : {R"("")", R"("relative")", R"("/a\u0000b")"}) {
    EXPECT_EQ(parse_reply(fmt::format(R"({{"cwd":{}}})", cwd)).value().cwd, "") << cwd;
  }
  EXPECT_EQ(parse_reply(fmt::format(R"({{"cwd":"/{}"}})", std::string(1 << 20, 'x'))).value().cwd,
            "");
  for (const char* line : {"0", "-1", "9223372036854775807"}) {
    const std::string answer =
        fmt::format(R"({{"error":{{"name":"E","message":"","lineNumber":{}}}}})", line);
    EXPECT_EQ(parse_reply(answer).value().error->line_number, std::nullopt) << line;
  }
}

TEST(Reply, HalfSurrogatesOfAnErrorAreReplaced) {
  EXPECT_EQ(parse_reply(R"({"error":{"name":"E","message":"a\ud800b"}})").value().error->message,
            "a\uFFFDb");
}

TEST(Reply, MoreLinesThanMemoryIsGivenForAreNotKept) {
  // Each takes eight times the memory of its text. A traceback of a deep recursion is far shorter,
  // and is cut later.
  const auto traceback = [](int lines) {
    std::string answer = R"({"error":{"name":"E","message":"","traceback":[)";
    for (int i = 1; i < lines; ++i) answer += "\"\",";
    return answer + "\"\"]}}";
  };
  EXPECT_EQ(parse_reply(traceback(500'000)).value().error->traceback.size(), 500'000);
  EXPECT_EQ(parse_reply(traceback(11'000'000)).error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace sw::engine
