// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/home.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sw::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(Home, IsWhereTheFirstCellBegins) {
  EXPECT_EQ(at_home({}, true).cwd, "/home/user");
  EXPECT_EQ(at_home({}, false).cwd, "");
  EXPECT_EQ(at_home({.cwd = "/workspace"}, true).cwd, "/home/user");
  EXPECT_EQ(at_home({.cwd = "/workspace/d/e"}, true).cwd, "/home/user/d/e");
  EXPECT_EQ(at_home({.cwd = "/workspaces"}, true).cwd, "/workspaces");
  EXPECT_EQ(at_home({.cwd = "/tmp"}, true).cwd, "/tmp");
}

TEST(Home, IsWhereAProgramLiesThatIsAFileOfTheWorkspace) {
  const sw::Run run = at_home(
      {.file_name = "/workspace/d/a.py", .args = {"/workspace/d/a.py", "/workspace/x"}}, true);
  EXPECT_EQ(run.file_name, "/home/user/d/a.py");
  EXPECT_THAT(run.args, ElementsAre("/home/user/d/a.py", "/workspace/x"));
  EXPECT_EQ(at_home({.file_name = "<cell 1>"}, true).file_name, "<cell 1>");
}

TEST(Home, IsInTheEnvironmentUnlessTheRunHasAnother) {
  EXPECT_THAT(at_home({.env = {{"A", "1"}}}, false).env,
              ElementsAre(Pair("A", "1"), Pair("HOME", "/home/user")));
  EXPECT_THAT(at_home({.env = {{"HOME", "/"}}}, false).env, ElementsAre(Pair("HOME", "/")));
}

TEST(Home, IsTheWorkspaceForOthers) {
  EXPECT_EQ(in_workspace("/home/user"), "/workspace");
  EXPECT_EQ(in_workspace("/home/user/d"), "/workspace/d");
  EXPECT_EQ(in_workspace("/home/users"), "/home/users");
  EXPECT_EQ(in_workspace("/workspace/home/user"), "/workspace/home/user");
}

}  // namespace
}  // namespace sw::engine
