// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sw::sandbox {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string text_of(const Bytes& bytes) { return std::string(as_text(bytes)); }

// As docs/formats/files.md has it: other versions of the program read it.
constexpr char kSandbox[] =
    R"({"v":1,"createdAt":1000,"lastUsed":2000,"envVars":{"A":"1","B":"zwei\u0000"}})";
constexpr char kContext[] =
    R"({"v":1,"number":3,"binding":"PYTHON","language":"python","engine":"CPython","cwd":"/workspace/a",)"
    R"("envVars":{"A":"1"},"createdAt":1000,"lastUsed":2000,"executions":5,"interpreterExecutions":6,)"
    R"("snapshot":{"build":"b","pages":1,"bytes":4096,"storedBytes":100,"takenAt":1500,"stale":true}})";

ContextRecord full_context() {
  return {.id = "c",
          .number = 3,
          .binding = "PYTHON",
          .language = "python",
          .engine = "CPython",
          .cwd = "/workspace/a",
          .env = {{"A", "1"}},
          .created_ms = 1000,
          .last_used_ms = 2000,
          .executions = 5,
          .interpreter_executions = 6,
          .snapshot = protocol::SnapshotInfo{.build = "b",
                                             .pages = 1,
                                             .bytes = 4096,
                                             .stored_bytes = 100,
                                             .taken_at_ms = 1500,
                                             .stale = true}};
}

std::string without(std::string text, const std::string& part) {
  const auto found = text.find(part);
  EXPECT_NE(found, std::string::npos) << part;
  return text.erase(found, part.size());
}

TEST(SandboxRecord, IsWrittenAsItIsDocumented) {
  const SandboxRecord record{.created_ms = 1000,
                             .last_used_ms = 2000,
                             .env = {{"A", "1"}, {"B", std::string("zwei\0", 5)}}};
  EXPECT_EQ(text_of(encode(record)), kSandbox);
}

TEST(SandboxRecord, IsReadAsItIsDocumented) {
  const auto record = decode_sandbox_record(as_bytes(kSandbox));
  ASSERT_TRUE(record.ok()) << record.error().message;
  EXPECT_EQ(record->created_ms, 1000);
  EXPECT_EQ(record->last_used_ms, 2000);
  EXPECT_THAT(record->env, ElementsAre(Pair("A", "1"), Pair("B", std::string("zwei\0", 5))));
}

TEST(SandboxRecord, ThatIsDamagedIsNotGuessed) {
  for (const char* text : {"", "{", "null", "[]", "{}", R"({"v":1})",
                           R"({"v":2,"createdAt":1,"lastUsed":1,"envVars":{}})",
                           R"({"v":1,"createdAt":1,"lastUsed":"1","envVars":{}})",
                           R"({"v":1,"createdAt":1,"lastUsed":1,"envVars":[]})",
                           R"({"v":1,"createdAt":1,"lastUsed":1,"envVars":{"A":null}})",
                           R"({"v":1,"createdAt":1e300,"lastUsed":1,"envVars":{}})"}) {
    const auto record = decode_sandbox_record(as_bytes(text));
    ASSERT_FALSE(record.ok()) << text;
    EXPECT_EQ(record.error().code, ErrorCode::kCorrupt) << text;
  }
}

TEST(ContextRecord, IsWrittenAsItIsDocumented) {
  EXPECT_EQ(text_of(encode(full_context())), kContext);
}

TEST(ContextRecord, IsReadAsItIsDocumented) {
  const auto record = decode_context_record("c", as_bytes(kContext));
  ASSERT_TRUE(record.ok()) << record.error().message;
  EXPECT_EQ(record->id, "c");
  EXPECT_EQ(record->number, 3u);
  EXPECT_EQ(record->cwd, "/workspace/a");
  EXPECT_EQ(record->interpreter_executions, 6u);
  ASSERT_TRUE(record->snapshot);
  EXPECT_TRUE(record->snapshot->stale);
  EXPECT_EQ(text_of(encode(*record)), kContext);
}

TEST(ContextRecord, WhatIsNotKnownIsLeftOut) {
  ContextRecord record = full_context();
  record.interpreter_executions.reset();
  record.snapshot.reset();
  const std::string text = text_of(encode(record));
  EXPECT_THAT(text, Not(HasSubstr("interpreterExecutions")));
  EXPECT_THAT(text, Not(HasSubstr("snapshot")));
  const auto read = decode_context_record("c", as_bytes(text));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->interpreter_executions, std::nullopt);
  EXPECT_FALSE(read->snapshot);
}

TEST(ContextRecord, ASnapshotOfAnotherShapeIsOneThatIsNotKnown) {
  const auto record =
      decode_context_record("c", as_bytes(without(kContext, R"(,"storedBytes":100)")));
  ASSERT_TRUE(record.ok()) << record.error().message;
  EXPECT_FALSE(record->snapshot);
}

TEST(ContextRecord, ThatIsDamagedIsNamed) {
  for (const char* part : {R"("v":1,)", R"("binding":"PYTHON",)", R"("executions":5,)"}) {
    const auto record = decode_context_record("c", as_bytes(without(kContext, part)));
    ASSERT_FALSE(record.ok()) << part;
    EXPECT_EQ(record.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(record.error().message, HasSubstr("the record of the context 'c'"));
  }
}

TEST(ContextRecord, AnIdThatNoAnswerCouldHoldIsDamage) {
  const auto record = decode_context_record("\xff", as_bytes(kContext));
  ASSERT_FALSE(record.ok());
  EXPECT_EQ(record.error().code, ErrorCode::kCorrupt);
}

TEST(Apply, SetsAndUnsetsAndLeavesTheRest) {
  Env env{{"KEPT", "1"}, {"CHANGED", "1"}, {"UNSET", "1"}};
  apply(env, {{"CHANGED", "2"}, {"UNSET", std::nullopt}, {"NEW", ""}, {"ABSENT", std::nullopt}});
  EXPECT_THAT(env, ElementsAre(Pair("CHANGED", "2"), Pair("KEPT", "1"), Pair("NEW", "")));
}

}  // namespace
}  // namespace sw::sandbox
