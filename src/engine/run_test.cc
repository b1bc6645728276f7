// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/engine/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sw::engine {
namespace {

using ::testing::HasSubstr;

TEST(Validate, AcceptsRealCode) { EXPECT_TRUE(validate({.code = "print('世界')"}).ok()); }

TEST(Validate, SaysWhatIsWrong) {
  using namespace std::string_literals;
  EXPECT_THAT(validate({.code = "  \n"}).error().message, HasSubstr("Non-empty code"));
  EXPECT_THAT(validate({.code = "x = '\xff'"}).error().message, HasSubstr("UTF-8 (byte 5)"));
  EXPECT_TRUE(validate({.code = std::string(kCodeBytesMax, 'x')}).ok());
  EXPECT_THAT(validate({.code = std::string(kCodeBytesMax + 1, 'x')}).error().message,
              HasSubstr("limit"));
  sw::Run request{.code = "1"};
  request.env = {{"A B", "1"}};
  EXPECT_THAT(validate(request).error().message, HasSubstr("'A B'"));
  request.env = {{"A", "x\0y"s}};
  EXPECT_THAT(validate(request).error().message, HasSubstr("NUL"));
  request.env = {};
  request.args = {"a\0"s};
  EXPECT_FALSE(validate(request).ok());
}

}  // namespace
}  // namespace sw::engine
