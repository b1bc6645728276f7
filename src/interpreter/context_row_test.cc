// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "interpreter/context_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sw::interpreter {
namespace {

using ::testing::HasSubstr;

// Other versions of the program read it.
constexpr char kRow[] =
    R"({"v":1,"cwd":"/workspace/a","createdAt":1000,"lastUsed":2000,"executions":5,"savedAt":1500,)"
    R"("savedExecution":4,"before":{"cwd":"/workspace","savedExecution":3,"rolledBack":true}})";

ContextRow full_row() {
  return {
      .cwd = "/workspace/a",
      .created_ms = 1000,
      .last_used_ms = 2000,
      .executions = 5,
      .saved_execution = 4,
      .saved_ms = 1500,
      .before = ContextRow::Before{.cwd = "/workspace", .saved_execution = 3, .rolled_back = true}};
}

std::string text_of(const Bytes& bytes) { return std::string(as_text(bytes)); }

TEST(ContextRow, IsWrittenInTheStoredForm) { EXPECT_EQ(text_of(encode(full_row())), kRow); }

TEST(ContextRow, IsReadFromTheStoredForm) {
  const auto row = decode_context_row(as_bytes(kRow));
  ASSERT_TRUE(row.ok()) << row.error().message;
  EXPECT_EQ(row->cwd, "/workspace/a");
  EXPECT_EQ(row->executions, 5u);
  EXPECT_EQ(row->saved_execution, 4u);
  ASSERT_TRUE(row->before);
  EXPECT_EQ(row->before->saved_execution, 3u);
  EXPECT_TRUE(row->before->rolled_back);
  EXPECT_EQ(text_of(encode(*row)), kRow);
}

TEST(ContextRow, WhatIsAbsentStaysAbsent) {
  ContextRow row = full_row();
  row.saved_execution.reset();
  row.before = ContextRow::Before{.cwd = "/workspace", .saved_execution = {}};
  const auto read = decode_context_row(encode(row));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->saved_execution, std::nullopt);
  ASSERT_TRUE(read->before);
  EXPECT_EQ(read->before->saved_execution, std::nullopt);
  EXPECT_FALSE(read->before->rolled_back);
  row.before.reset();
  EXPECT_FALSE(decode_context_row(encode(row)).value().before);
}

TEST(ContextRow, OfAnotherVersionIsRefusedAndSaysSo) {
  std::string text = kRow;
  text.replace(text.find("\"v\":1"), 5, "\"v\":2");
  const auto row = decode_context_row(as_bytes(text));
  ASSERT_FALSE(row.ok());
  EXPECT_EQ(row.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(row.error().message, HasSubstr("another version"));
}

TEST(ContextRow, ThatIsCutShortAnywhereIsDamage) {
  const std::string whole = kRow;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto row = decode_context_row(as_bytes(whole.substr(0, length)));
    ASSERT_FALSE(row.ok()) << length;
    EXPECT_EQ(row.error().code, ErrorCode::kCorrupt) << length;
  }
}

TEST(ContextRow, WithAValueOfAnotherTypeIsDamage) {
  const std::string whole = kRow;
  for (const auto& [from, to] : std::initializer_list<std::pair<std::string, std::string>>{
           {"\"executions\":5", "\"executions\":-5"},
           {"\"executions\":5", "\"executions\":1.5"},
           {"\"cwd\":\"/workspace/a\"", "\"cwd\":null"},
           {"\"before\":{", "\"before\":[],\"other\":{"}}) {
    std::string text = whole;
    text.replace(text.find(from), from.size(), to);
    const auto row = decode_context_row(as_bytes(text));
    ASSERT_FALSE(row.ok()) << to;
    EXPECT_EQ(row.error().code, ErrorCode::kCorrupt) << to;
  }
}

TEST(ContextRow, IsStaleWhenARunAfterTheSavedOneHasEnded) {
  ContextRow row;
  row.executions = 2;
  EXPECT_FALSE(row.stale());  // nothing is saved
  row.saved_execution = 2;
  EXPECT_FALSE(row.stale());
  row.executions = 3;
  EXPECT_TRUE(row.stale());
}

}  // namespace
}  // namespace sw::interpreter
