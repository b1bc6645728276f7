// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/storage.h"

#include <gtest/gtest.h>

#include <limits>

namespace sw::storage {
namespace {

TEST(Names, AClassIsAnIdentifierAndAnIdAnyBytesButZero) {
  EXPECT_TRUE(check_name({"sandbox", "a/b \xff"}).ok());
  EXPECT_TRUE(check_name({"a_1", std::string(kIdBytesMax, 'x')}).ok());
  const ObjectName bad[] = {{"", "x"},
                            {"A", "x"},
                            {"1a", "x"},
                            {"a-b", "x"},
                            {std::string(kClassBytesMax + 1, 'a'), "x"},
                            {"a", ""},
                            {"a", std::string(kIdBytesMax + 1, 'x')},
                            {"a", std::string("x\0y", 3)}};
  for (const ObjectName& name : bad) {
    const auto checked = check_name(name);
    ASSERT_FALSE(checked.ok()) << to_string(name);
    EXPECT_EQ(checked.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(Names, AreEscapedInMessages) {
  EXPECT_EQ(to_string({"a", "x y\n\\\xc3"}), "a/x\\x20y\\x0a\\x5c\\xc3");
}

TEST(Keys, NumbersKeepTheirOrder) {
  const std::uint64_t numbers[] = {0,   1,         255,
                                   256, 1U << 31U, std::numeric_limits<std::uint64_t>::max()};
  std::string before;
  for (const std::uint64_t number : numbers) {
    const std::string key = ordered_key(number);
    EXPECT_LT(before, key);
    EXPECT_EQ(number_of_key(key), number);
    before = key;
  }
  EXPECT_EQ(number_of_key("1234567"), std::nullopt);
}

TEST(Ranges, OfAPrefixEndAtTheFirstKeyBeyondIt) {
  EXPECT_EQ(Range::of_prefix(1, "ab").to, "ac");
  EXPECT_EQ(Range::of_prefix(1, "a\xff").to, "b");
  EXPECT_EQ(Range::of_prefix(1, "\xff\xff").to, "");
  EXPECT_EQ(Range::of_prefix(1, "").to, "");
}

}  // namespace
}  // namespace sw::storage
