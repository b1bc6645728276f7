// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "bake/facts_file.h"

#include <gtest/gtest.h>

namespace sw::bake {
namespace {

TEST(FactsFile, WhatWasFoundOutAtBakeIsReadAgain) {
  const BakeFacts facts = {{"stop_word", 1024}, {"largest", UINT64_MAX}};
  EXPECT_EQ(parse_bake_facts(to_json(facts)).value(), facts);
  EXPECT_TRUE(parse_bake_facts(to_json(BakeFacts())).value().empty());
}

TEST(FactsFile, WhatTheScanSawIsReadAgain) {
  const wasm::StateFacts facts = {.has_start = false,
                                  .writes_tables = true,
                                  .drops_segments = false,
                                  .passive_data = true,
                                  .imports_state = false,
                                  .mutable_globals = 3};
  const auto again = parse_state_facts(to_json(facts)).value();
  EXPECT_FALSE(again.has_start);
  EXPECT_TRUE(again.writes_tables);
  EXPECT_TRUE(again.passive_data);
  EXPECT_EQ(again.mutable_globals, 3U);
}

TEST(FactsFile, DamageIsToldWhateverItIs) {
  for (const char* text : {"", "[]", "{", "null", R"({"a":"text"})", R"({"a":-1})"})
    EXPECT_EQ(parse_bake_facts(text).error().code, ErrorCode::kCorrupt) << text;
  for (const char* text : {"", "{}", R"({"has_start":1})"})
    EXPECT_EQ(parse_state_facts(text).error().code, ErrorCode::kCorrupt) << text;
}

}  // namespace
}  // namespace sw::bake
