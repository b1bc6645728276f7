// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "object/output_gate.h"

#include <gtest/gtest.h>

#include <string>

namespace sw::object {
namespace {

class OutputGateTest : public testing::Test {
 protected:
  void reply(const std::string& name) {
    gate_.when_open([this, name](Result<void> open) {
      left_ += name + (open.ok() ? " " : "(" + open.error().message + ") ");
    });
  }

  OutputGate gate_;
  std::string left_;
};

TEST_F(OutputGateTest, WithoutCommitsRepliesLeaveAtOnce) {
  reply("a");
  EXPECT_EQ(left_, "a ");
}

TEST_F(OutputGateTest, AReplyWaitsForEarlierCommitsOnly) {
  gate_.hold();
  reply("a");
  gate_.hold();
  reply("b");
  EXPECT_EQ(left_, "");
  gate_.release({});
  EXPECT_EQ(left_, "a ");
  gate_.release({});
  EXPECT_EQ(left_, "a b ");
}

TEST_F(OutputGateTest, OnceBrokenItGivesTheFirstErrorForEver) {
  gate_.hold();
  gate_.hold();
  reply("a");
  gate_.release(Error{ErrorCode::kUnavailable, "disk full", 0});
  gate_.release(Error{ErrorCode::kUnavailable, "another", 0});
  reply("b");
  gate_.hold();
  gate_.release({});
  reply("c");
  EXPECT_EQ(left_, "a(disk full) b(disk full) c(disk full) ");
}

TEST_F(OutputGateTest, AReplyMayLeadToMoreCommits) {
  gate_.hold();
  gate_.when_open([this](Result<void>) {
    gate_.hold();
    reply("second");
  });
  gate_.release({});
  EXPECT_EQ(left_, "");
  gate_.release({});
  EXPECT_EQ(left_, "second ");
}

}  // namespace
}  // namespace sw::object
