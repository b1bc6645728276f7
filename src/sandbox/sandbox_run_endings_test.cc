// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Runs that are interrupted, and contexts and sandboxes that end while they run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "sandbox/sandbox_runs_fixture.h"

namespace sw::sandbox {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(SandboxRunsTest, InterruptingEndsTheRunOfThatContextOnly) {
  make("a");
  make("b");
  Future first = hold("a", "hold a");
  Future second = hold("b", "hold b");
  EXPECT_TRUE(sandbox().interrupt("a").ok());
  EXPECT_EQ(first.get()->outcome.ending, Ending::kCancelled);
  gate.open();
  EXPECT_EQ(second.get()->outcome.ending, Ending::kCompleted);
  EXPECT_EQ(sandbox().interrupt("nope").error().code, ErrorCode::kContextNotFound);
  EXPECT_EQ(run("a", "1")->outcome.ending, Ending::kCompleted) << "later runs are not meant";
}

TEST_F(SandboxRunsTest, InterruptingEndsARunThatWaitsForItsTurn) {
  make("a");
  Future running = hold("a", "stubborn a");
  Future waiting = start_in("a", "2");
  EXPECT_TRUE(sandbox().interrupt("a").ok());
  EXPECT_EQ(code_of(waiting), ErrorCode::kUnavailable);
  gate.open();
  EXPECT_EQ(running.get()->outcome.ending, Ending::kCancelled);
  EXPECT_THAT(python->runs, SizeIs(1));
}

TEST_F(SandboxRunsTest, TheCallersTokenEndsARunThatRunsAndOneThatWaits) {
  make("a");
  std::stop_source first_stop;
  std::stop_source second_stop;
  Future running = start({.code = "hold a", .context = "a", .cancel = first_stop.get_token()});
  gate.wait_for("hold a");
  Future waiting = start({.code = "2", .context = "a", .cancel = second_stop.get_token()});
  second_stop.request_stop();
  EXPECT_EQ(code_of(waiting), ErrorCode::kUnavailable);
  first_stop.request_stop();
  EXPECT_EQ(running.get()->outcome.ending, Ending::kCancelled);
  Future late = start({.code = "3", .context = "a", .cancel = second_stop.get_token()});
  EXPECT_EQ(code_of(late), ErrorCode::kUnavailable);
}

TEST_F(SandboxRunsTest, DeletingAContextEndsItsRuns) {
  make("a");
  Future running = hold("a", "hold a", "write f 1");
  Future waiting = start_in("a", "2");
  EXPECT_TRUE(sandbox().delete_context("a", printed_at_end).ok());
  EXPECT_EQ(running.get()->outcome.ending, Ending::kCancelled);
  EXPECT_EQ(code_of(waiting), ErrorCode::kUnavailable);
  EXPECT_THAT(context_ids(), IsEmpty());
  EXPECT_EQ(read("f"), "1");
  EXPECT_EQ(run("a", "1").error().code, ErrorCode::kContextNotFound);
}

TEST_F(SandboxRunsTest, DestroyingEndsAllRunsAndLeavesNothing) {
  make("a");
  make("b");
  Future running = hold("a", "hold a", "write f 1");
  Future other = hold("b", "hold b");
  Future waiting = start_in("a", "2");
  Future outside = start({.code = "hold c"}, "RUBY");
  gate.wait_for("hold c");
  EXPECT_TRUE(sandbox().destroy(printed_at_end).ok());
  EXPECT_EQ(running.get()->outcome.ending, Ending::kCancelled);
  EXPECT_EQ(other.get()->outcome.ending, Ending::kCancelled);
  EXPECT_EQ(code_of(waiting), ErrorCode::kUnavailable);
  EXPECT_TRUE(outside.get().ok());
  EXPECT_THAT(python->interpreters, IsEmpty());
  EXPECT_FALSE(*storage->find(name));
  EXPECT_THAT(context_ids(), IsEmpty());
  EXPECT_EQ(read("f"), "file not found");
}

TEST_F(SandboxRunsTest, DeletingAContextRunsItsExitHandlers) {
  make("a");
  python->at_end = "write left behind";
  EXPECT_TRUE(sandbox().delete_context("a", printed_at_end).ok());
  EXPECT_EQ(printed_at_end.out, "ended\n");
  EXPECT_EQ(read("left"), "behind");
  EXPECT_EQ(python->calls.back(), "remove a") << "what it wrote is stored first";
  EXPECT_THAT(context_ids(), IsEmpty());
  EXPECT_EQ(sandbox().delete_context("a", printed_at_end).error().code,
            ErrorCode::kContextNotFound);
}

TEST_F(SandboxRunsTest, AContextThatCannotEndIsDeletedAllTheSame) {
  make("a");
  python->refuse = Error{.code = ErrorCode::kInternal, .message = "no"};
  EXPECT_TRUE(sandbox().delete_context("a", printed_at_end).ok());
  EXPECT_EQ(python->calls.back(), "remove a");
  EXPECT_THAT(context_ids(), IsEmpty());
}

TEST_F(SandboxRunsTest, DestroyingRunsTheExitHandlersOfAllContexts) {
  make("a");
  make("b");
  EXPECT_TRUE(sandbox().destroy(printed_at_end).ok());
  EXPECT_EQ(printed_at_end.out, "ended\nended\n");
}

TEST_F(SandboxRunsTest, DestroyingWaitsForRunsThatDoNotEndAndRefusesOthers) {
  Future in_context = start({.code = "stubborn a"}, "PYTHON");
  Future outside = start({.code = "stubborn b"}, "RUBY");
  gate.wait_for("stubborn a");
  gate.wait_for("stubborn b");
  auto destroyed =
      std::async(std::launch::async, [&] { return sandbox().destroy(printed_at_end); });
  ErrorCode refused{};
  while (refused != ErrorCode::kUnavailable) {
    const auto run = start({.code = "1"}, "RUBY").get();
    if (!run.ok()) refused = run.error().code;
  }
  EXPECT_EQ(destroyed.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  gate.open("stubborn a");
  EXPECT_TRUE(in_context.get().ok());
  EXPECT_EQ(destroyed.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  gate.open("stubborn b");
  EXPECT_TRUE(outside.get().ok());
  EXPECT_TRUE(destroyed.get().ok());
  EXPECT_FALSE(*storage->find(name));
  EXPECT_EQ(start({.code = "1"}, "PYTHON").get()->outcome.context->executions, 1u);
}

TEST_F(SandboxRunsTest, ARunThatCannotBeQueuedIsRefusedAndForgotten) {
  make("a");
  guests.shut_down();
  EXPECT_EQ(run("a", "1").error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(sandbox().destroy(printed_at_end).ok()) << "it waits for no run";
}

}  // namespace
}  // namespace sw::sandbox
