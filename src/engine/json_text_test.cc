// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace sw::engine {
namespace {

using ::testing::Optional;

TEST(NormalJson, HasNoWhiteSpace) {
  EXPECT_THAT(normal_json(" [1,\n2\t,\r{ \"a\" : [ ] , \"b\":{ } } ]\n"),
              Optional<std::string>(R"([1,2,{"a":[],"b":{}}])"));
}

TEST(NormalJson, KeepsNumbersDigitForDigit) {
  for (const char* number :
       {"0", "-0", "12345678901234567890123", "-9223372036854775809", "18446744073709551616", "0.1",
        "1e400", "-1E-400", "1.000000000000000000000000000000001", "1e+2", "123456789012345678.00",
        "0e0"}) {
    EXPECT_THAT(normal_json(number), Optional<std::string>(number));
    EXPECT_THAT(normal_json(std::string("[") + number + "]"),
                Optional(std::string("[") + number + "]"));
  }
}

TEST(NormalJson, EscapesInStringsOnlyWhatMustBe) {
  EXPECT_THAT(normal_json(R"("\u00e9\/\u0041\u0001\u001f\n\"\\\u2028\ud83d\ude00")"),
              Optional<std::string>("\"\u00e9/A\\u0001\\u001f\\n\\\"\\\\\u2028\U0001F600\""));
  EXPECT_THAT(normal_json("{\"\\u0061\\n\":\"\x7f\"}"),
              Optional<std::string>("{\"a\\n\":\"\x7f\"}"));
}

TEST(NormalJson, KeepsLongStringsWithEscapesWhole) {
  // The parser hands them over in parts.
  std::string text = "\"";
  for (int i = 0; i < 10'000; ++i) text += "x\u20ac\\n";
  text += '"';
  EXPECT_THAT(normal_json(text), Optional(text));
  EXPECT_THAT(normal_json("{" + text + ":" + text + "}"), Optional("{" + text + ":" + text + "}"));
}

TEST(NormalJson, ReplacesHalfSurrogates) {
  EXPECT_THAT(normal_json(R"(["\ud800","\udc00\ud800"])"),
              Optional<std::string>("[\"\uFFFD\",\"\uFFFD\uFFFD\"]"));
}

TEST(NormalJson, IsNoneWithAKeyTwice) {
  EXPECT_TRUE(normal_json(R"({"a":{"b":1},"b":{"a":1}})"));
  EXPECT_TRUE(normal_json(R"([{"a":1},{"a":1}])"));
  for (const char* text :
       {R"({"a":1,"a":1})", R"({"a":1,"\u0061":2})", R"([{"b":{"x":1,"y":2,"x":3}}])",
        R"({"":1,"":2})", R"({"a":{"a":1},"b":1,"a":2})"}) {
    EXPECT_FALSE(normal_json(text)) << text;
  }
}

TEST(NormalJson, IsNoneOfWhatIsNotJson) {
  for (const char* text : {"",
                           " ",
                           "nul",
                           "NaN",
                           "Infinity",
                           "01",
                           "1.",
                           ".5",
                           "+1",
                           "'a'",
                           "[1,]",
                           "{\"a\"}",
                           "{1:2}",
                           "[1] 2",
                           "\"\n\"",
                           "\"\xff\"",
                           "\"\xed\xa0\x80\"",
                           "[1/**/]",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "]",
                           "\xef\xbb\xbf"
                           "1"}) {
    EXPECT_FALSE(normal_json(text)) << text;
  }
  EXPECT_FALSE(normal_json(std::string("1\0", 2)));
}

TEST(NormalJson, IsBounded) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(normal_json(nested(kJsonDepthMax)));
  EXPECT_FALSE(normal_json(nested(kJsonDepthMax + 1)));
  EXPECT_FALSE(normal_json(std::string(1'000'000, '[')));
  EXPECT_FALSE(normal_json(std::string(kJsonBytesMax, ' ') + "1"));
}

TEST(WholeSurrogates, LeavesPairsAndOtherEscapes) {
  const auto same = [](const char* text) { EXPECT_EQ(with_whole_surrogates(text), text); };
  same(R"("\ud83d\ude00 \u0007 \n \\ud800 \uD7FF \ue000")");
  same("\\");
  same("\\u");
  same("\\ud80");
  EXPECT_EQ(with_whole_surrogates(R"("\ud800x\udfff")"), R"("\ufffdx\ufffd")");
  EXPECT_EQ(with_whole_surrogates(R"("\\\ud9ab")"), R"("\\\ufffd")");
  EXPECT_EQ(with_whole_surrogates(R"("\ud800\ud800\udc00\udc00")"),
            R"("\ufffd\ud800\udc00\ufffd")");
}

TEST(EscapedLineEnds, AreThoseOfReadersOfLines) {
  EXPECT_EQ(with_escaped_line_ends("\"a\u2028\u2029\u0085\u20ac\""), R"("a\u2028\u2029\u0085)"
                                                                     "\u20ac\"");
  EXPECT_EQ(with_escaped_line_ends("[]"), "[]");
}

}  // namespace
}  // namespace sw::engine
