// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/object_file.h"

#include <gtest/gtest.h>

#include "storage/sqlite/connection.h"

namespace sw::storage {
namespace {

TEST(Migrate, RunsTheStepsNotSeenYetOnceAndAllOrNone) {
  auto connection = *Connection::open_in_memory();
  const auto migrated = [&](const std::vector<std::string>& steps) -> Result<void> {
    RollbackGuard guard(*connection);
    SW_CHECK_OK(connection->execute("BEGIN"));
    SW_CHECK_OK(migrate(*connection, steps));
    return connection->execute("COMMIT");
  };
  const std::string one = "CREATE TABLE t (x INTEGER); INSERT INTO t VALUES (1);";
  const std::string two = "ALTER TABLE t ADD COLUMN y INTEGER; UPDATE t SET y = x * 10;";
  ASSERT_TRUE(migrated({one}).ok());
  ASSERT_TRUE(migrated({one}).ok());
  EXPECT_FALSE(migrated({one, two, "NONSENSE"}).ok());
  EXPECT_EQ(*connection->number("PRAGMA user_version"), 1);
  EXPECT_FALSE(connection->number("SELECT y FROM t").ok());
  ASSERT_TRUE(migrated({one, two}).ok());
  EXPECT_EQ(*connection->number("SELECT y FROM t"), 10);
  EXPECT_EQ(migrated({one}).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace sw::storage
