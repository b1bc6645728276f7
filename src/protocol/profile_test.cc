// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/protocol/profile.h"

#include <gtest/gtest.h>

namespace sw::protocol {
namespace {

TEST(Profiles, AreFoundByName) {
  EXPECT_EQ(find_profile("standard")->after_error, AfterError::kKeep);
  EXPECT_EQ(find_profile("compat")->after_error, AfterError::kFilesBack);
  EXPECT_FALSE(find_profile(""));
  EXPECT_FALSE(find_profile("Compat"));
}

TEST(OnError, IsOneOfTwoWords) {
  EXPECT_EQ(parse_on_error("keep"), AfterError::kKeep);
  EXPECT_EQ(parse_on_error("rollback"), AfterError::kRollback);
  for (const char* other : {"", "Keep", "filesBack", "keep "})
    EXPECT_FALSE(parse_on_error(other)) << other;
}

}  // namespace
}  // namespace sw::protocol
