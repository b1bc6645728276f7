// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/result_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sandbox_workers/engine/json_text.h"

namespace sw::engine {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

sw::Run request_of(std::string code) {
  sw::Run request;
  request.code = std::move(code);
  return request;
}

TEST(ResultJson, HasTheProtocolsShape) {
  Outcome outcome;
  outcome.value = Value{Value::Kind::kJson, "{\"a\":1}"};
  EngineInfo info;
  info.language = "python";
  info.engine_name = "E";
  const std::string text =
      execution_result_json(info, request_of("x"), outcome, "one\ntwo", "caf\xe9\n");
  EXPECT_THAT(text, HasSubstr(R"("code":"x","language":"python","engine":"E")"));
  EXPECT_THAT(text, HasSubstr(R"("logs":{"stdout":["one","two"],"stderr":["caf)"));
  EXPECT_THAT(text, HasSubstr("\"results\":[{\"json\":{\"a\":1}}]}"));
  outcome.error = GuestError{"E", "m", {"t"}, 2};
  EXPECT_THAT(execution_result_json({}, request_of("x"), outcome, "", ""),
              HasSubstr(R"("error":{"name":"E","message":"m","traceback":["t"],"lineNumber":2})"));
  EXPECT_THAT(execution_result_json({}, request_of("x"), outcome, "", ""),
              HasSubstr("\"results\":[]}"));
}

TEST(ResultJson, TimesAreNumbersThatPeopleCanRead) {
  ContextReport context;
  context.snapshot_ms = 6.7028621;
  EXPECT_THAT(execution_result_json({}, request_of("1"), {}, "", "", context),
              HasSubstr("\"snapshotMs\":6.703}"));
}

TEST(ResultJson, IsOneLineOfJsonWhateverTheEngineSays) {
  for (const char* value :
       {"[1,\n2\n]", "{\"a\":1,\"a\":2}", "]", "1}],\"code\":2", "\xff", "\"\u2028\"", ""}) {
    Outcome outcome;
    outcome.value = Value{Value::Kind::kJson, value};
    outcome.exit_code = 3;
    ContextReport context;
    context.note = "\xff\n";
    context.cwd = "\u2028\x01";
    const std::string text =
        execution_result_json({}, request_of("1"), outcome, "\x85\u0085\u2029", "\r", context);
    EXPECT_THAT(text, Not(HasSubstr("\n"))) << value;
    EXPECT_THAT(text, Not(HasSubstr("\u2028"))) << value;
    EXPECT_THAT(text, Not(HasSubstr("\u2029"))) << value;
    EXPECT_THAT(text, Not(HasSubstr("\u0085"))) << value;
    EXPECT_TRUE(normal_json(text).has_value()) << "no JSON, or a key twice: " << text;
  }
}

}  // namespace
}  // namespace sw::engine
