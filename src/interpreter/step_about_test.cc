// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "interpreter/step_about.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sandbox_workers/base/utf8.h"
#include "snapshot/snapshot_store.h"

namespace sw::interpreter {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

protocol::HistoryEntry about(const std::string& code, const WorkspaceDiff& changes = {}) {
  const std::string text = about_step(code, changes);
  EXPECT_LE(text.size(), snapshot::kAboutBytesMax);
  EXPECT_FALSE(first_invalid_utf8(text));
  return read_about(text);
}

TEST(StepAbout, SaysTheFirstLineThatIsNotBlank) {
  EXPECT_EQ(about("x = 1").code, "x = 1");
  EXPECT_EQ(about("\n  \n\tif x:  \r\n  y()").code, "if x:");
  EXPECT_EQ(about("").code, "");
  EXPECT_EQ(about(" \n ").code, "");
}

TEST(StepAbout, ShowsTextsWithoutControlCharactersAndCutsLongOnes) {
  EXPECT_EQ(about("a\tb\x1b[31mc\x7f"
                  "d")
                .code,
            "a b [31mc d");
  EXPECT_EQ(about("a\xff"
                  "b")
                .code,
            "a\xef\xbf\xbd"
            "b");
  std::string long_line;
  for (int i = 0; i < 100; ++i) long_line += "é";
  const std::string code = about(long_line).code;
  EXPECT_THAT(code, SizeIs(::testing::Le(kAboutTextBytesMax)));
  EXPECT_TRUE(code.ends_with("é…")) << code;
  EXPECT_THAT(about(std::string(5000, '"')).code, SizeIs(kAboutTextBytesMax));
}

TEST(StepAbout, NamesSomeOfTheFilesThatChanged) {
  WorkspaceDiff changes;
  EXPECT_THAT(about("x", changes).files, IsEmpty());
  changes.files.push_back({.path = "/workspace/a.txt"});
  changes.removed.emplace_back("/workspace/b/c");
  EXPECT_THAT(about("x", changes).files, ElementsAre("a.txt", "b/c"));
  EXPECT_EQ(about("x", changes).files_changed, 2U);
  for (int i = 0; i < 100; ++i)
    changes.removed.emplace_back("/workspace/" + std::string(4000, '\\'));
  EXPECT_THAT(about("x", changes).files, SizeIs(kAboutFilesMax));
  EXPECT_EQ(about("x", changes).files_changed, 102U);
}

TEST(StepAbout, WhatIsDamagedIsEmpty) {
  for (const char* const text : {"", "{", "[]", "{}", R"({"code":1})", R"({"code":"a","files":1})"})
    EXPECT_EQ(read_about(text).code, "") << text;
}

}  // namespace
}  // namespace sw::interpreter
