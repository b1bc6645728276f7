// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/result_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/json_text.h"

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
  outcome.out = "one\ntwo";
  outcome.err = "caf\xe9\n";
  std::string text = execution_result_json("python", "E", request_of("x"), outcome);
  EXPECT_THAT(text, HasSubstr(R"("code":"x","language":"python","engine":"E")"));
  EXPECT_THAT(text, HasSubstr(R"("logs":{"stdout":["one","two"],"stderr":["caf)"));
  EXPECT_THAT(text, HasSubstr("\"results\":[{\"json\":{\"a\":1}}]}"));
  EXPECT_THAT(text, Not(HasSubstr("executionCount")));
  EXPECT_THAT(text, Not(HasSubstr("writeBack")));
  outcome.error = GuestError{"E", "m", {"t"}, 2};
  text = execution_result_json("", "", request_of("x"), outcome);
  EXPECT_THAT(text,
              HasSubstr(R"("error":{"name":"E","message":"m","traceback":["t"],"lineNumber":2})"));
  EXPECT_THAT(text, HasSubstr("\"results\":[]}"));
}

TEST(ResultJson, SaysOfAContextWhatIsKnown) {
  Outcome outcome;
  outcome.cwd = "/workspace/d";
  outcome.context = ContextRun{.id = "c", .executions = 3, .state = ContextState::kRestored};
  std::string text = execution_result_json("", "", request_of("1"), outcome);
  EXPECT_THAT(text, HasSubstr("\"executionCount\":3,"));
  EXPECT_THAT(
      text,
      HasSubstr(R"("context":{"id":"c","cwd":"/workspace/d","executions":3,"state":"restored"},)"));
  outcome.context->note = "why";
  outcome.context->snapshot_bytes_written = 5;
  EXPECT_THAT(execution_result_json("", "", request_of("1"), outcome, {.expires_at_ms = 7}),
              HasSubstr(R"("state":"restored","note":"why","expiresAt":7},)"))
      << "nothing was saved";
  outcome.context->snapshot_ms = 6.7028621;
  text = execution_result_json("", "", request_of("1"), outcome);
  EXPECT_THAT(text, HasSubstr("\"savedBytes\":5"));
  EXPECT_THAT(text, HasSubstr("\"snapshotMs\":6.703}")) << "people read it";
}

TEST(ResultJson, SaysWhatBecameOfTheFolder) {
  const ResultExtras extras{
      .files = WriteBackReport{.written = 2, .refused = {"a: why"}, .left = {}, .error = "full"}};
  EXPECT_THAT(execution_result_json("", "", request_of("1"), {}, extras),
              HasSubstr(R"("writeBack":{"written":2,"refused":["a: why"],"error":"full"})"));
}

TEST(ResultJson, IsOneLineOfJsonWhateverTheEngineSays) {
  for (const char* value :
       {"[1,\n2\n]", "{\"a\":1,\"a\":2}", "]", "1}],\"code\":2", "\xff", "\"\u2028\"", ""}) {
    Outcome outcome;
    outcome.value = Value{Value::Kind::kJson, value};
    outcome.exit_code = 3;
    outcome.cwd = "\u2028\x01";
    outcome.out = "\x85\u0085\u2029";
    outcome.err = "\r";
    outcome.context.emplace().note = "\xff\n";
    const std::string text = execution_result_json("", "", request_of("1"), outcome);
    EXPECT_THAT(text, Not(HasSubstr("\n"))) << value;
    EXPECT_THAT(text, Not(HasSubstr("\u2028"))) << value;
    EXPECT_THAT(text, Not(HasSubstr("\u2029"))) << value;
    EXPECT_THAT(text, Not(HasSubstr("\u0085"))) << value;
    EXPECT_TRUE(normal_json(text).has_value()) << "no JSON, or a key twice: " << text;
  }
}

}  // namespace
}  // namespace sw::engine
