// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sw {
namespace {

TEST(Host, RunsCodeInAFreshInterpreter) {
  const Host host = Host::open().value();
  const Outcome outcome =
      host.run({.language = "javascript", .code = "console.log(1); 6 * 7"}).value();
  EXPECT_EQ(outcome.value->text, "42");
  EXPECT_EQ(outcome.out, "1\n");
}

TEST(Host, AContextGoesOnFromRunToRun) {
  const Host host = Host::open().value();
  const Sandbox sandbox = host.sandbox("user-42");
  ASSERT_TRUE(sandbox.run({.language = "js", .code = "var x = 41"}).ok());
  const Outcome outcome = sandbox.run({.language = "javascript", .code = "x + 1"}).value();
  EXPECT_EQ(outcome.value->text, "42");
  EXPECT_EQ(outcome.context->executions, 2U);
  EXPECT_EQ(outcome.context->id, "javascript");
}

}  // namespace
}  // namespace sw
