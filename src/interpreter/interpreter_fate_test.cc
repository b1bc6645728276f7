// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What is kept, by how a run ended and what was asked for, and what is taken back.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "interpreter/interpreter_fixture.h"

namespace sw::interpreter {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Fate {
  const char* op;  ///< how the run ends, which has counted to 2 and written "new"
  AfterError after_error;
  bool saved;
  bool stale;
  const char* file;     ///< what it holds after the run; "old" was there before
  const char* counter;  ///< what the memory holds in the next run
};

void PrintTo(const Fate& fate, std::ostream* out) {
  *out << fate.op << static_cast<int>(fate.after_error);
}

class FateTest : public InterpreterTest, public ::testing::WithParamInterface<Fate> {};

TEST_P(FateTest, FilesAndMemoryMoveTogether) {
  const Fate& fate = GetParam();
  run(R"({"op":"write","path":"/workspace/a","content":"old","then":"inc"})");
  const auto ended = run(write_a_then(fate.op), fate.after_error);
  EXPECT_EQ(ended.outcome.context->executions, 2u) << "a run is counted however it ended";
  EXPECT_EQ(ended.outcome.context->snapshot_ms.has_value(), fate.saved);
  EXPECT_EQ(ended.snapshot->stale, fate.stale);
  EXPECT_EQ(file_a(), fate.file);
  EXPECT_EQ(value(run(kRead)), fate.counter);
}

TEST_P(FateTest, ARunWhoseAnswerWasLostIsTakenBack) {
  const Fate& fate = GetParam();
  run_known(R"({"op":"write","path":"/workspace/a","content":"old","then":"inc"})", 0);
  protocol::ExecuteArgs args;
  args.executions_known = 1;
  args.run.on_error = fate.after_error;
  (void)ask(write_a_then(fate.op), args);  // the Sandbox never hears of it
  restart();
  const auto next = run_known(kRead, 1);
  EXPECT_EQ(value(next), "1");
  EXPECT_EQ(next.outcome.context->executions, 2u);
  EXPECT_THAT(next.outcome.context->note, HasSubstr("run 2 was undone"));
  EXPECT_THAT(next.outcome.context->note, ::testing::Not(HasSubstr("stale")));
  EXPECT_EQ(file_a(), "old");
}

INSTANTIATE_TEST_SUITE_P(AllEndings, FateTest,
                         ::testing::Values(
                             // how it ends, what was asked for, saved, stale, file, counter
                             Fate{"inc", AfterError::kKeep, true, false, "new", "2"},
                             Fate{"exit", AfterError::kKeep, true, false, "new", "2"},
                             Fate{"error", AfterError::kKeep, true, false, "new", "2"},
                             Fate{"limit", AfterError::kKeep, true, false, "new", "2"},
                             Fate{"hold", AfterError::kKeep, false, true, "new", "1"},
                             Fate{"invalidate", AfterError::kKeep, false, true, "old", "1"},
                             Fate{"fault", AfterError::kKeep, false, true, "old", "1"},
                             Fate{"inc", AfterError::kRollback, true, false, "new", "2"},
                             Fate{"exit", AfterError::kRollback, true, false, "new", "2"},
                             Fate{"error", AfterError::kRollback, false, false, "old", "1"},
                             Fate{"limit", AfterError::kRollback, false, false, "old", "1"},
                             Fate{"hold", AfterError::kRollback, false, true, "new", "1"},
                             Fate{"invalidate", AfterError::kRollback, false, false, "old", "1"},
                             Fate{"fault", AfterError::kRollback, false, false, "old", "1"},
                             Fate{"inc", AfterError::kFilesBack, true, false, "new", "2"},
                             Fate{"exit", AfterError::kFilesBack, true, false, "new", "2"},
                             Fate{"error", AfterError::kFilesBack, true, false, "old", "2"},
                             Fate{"limit", AfterError::kFilesBack, true, false, "old", "2"},
                             Fate{"invalidate", AfterError::kFilesBack, false, true, "old", "1"}),
                         [](const auto& fate) {
                           return std::string(fate.param.op) +
                                  std::to_string(static_cast<int>(fate.param.after_error));
                         });

// --- answers that were lost

TEST_F(InterpreterTest, ARunWhoseAnswerWasLostIsTakenBack) {
  run_known(kInc, 0);
  run_known(kInc, 1);
  run_known(kInc, 2);  // the Sandbox never hears of it
  restart();
  const auto next = run_known(kRead, 2);
  EXPECT_EQ(value(next), "2");
  EXPECT_EQ(next.outcome.context->executions, 3u);
  EXPECT_EQ(next.outcome.context->state, ContextState::kRestored);
  EXPECT_THAT(next.outcome.context->note, HasSubstr("run 3 was undone"));
  EXPECT_THAT(run_known(kInc, 3).outcome.context->note, IsEmpty());
}

TEST_F(InterpreterTest, AFirstRunWhoseAnswerWasLostLeavesNothing) {
  run_known(kInc, 0);
  const auto again = run_known(kInc, 0);
  EXPECT_EQ(value(again), "1");
  EXPECT_EQ(again.outcome.context->state, ContextState::kFresh);
  EXPECT_EQ(again.outcome.context->executions, 1u);
  EXPECT_THAT(again.outcome.context->note, HasSubstr("run 1 was undone"));
}

TEST_F(InterpreterTest, ALostRunThatWasNotSavedIsTakenBackToo) {
  run_known(kInc, 0);
  run_known(kInvalidate, 1);
  const auto next = run_known(kRead, 1);
  EXPECT_EQ(value(next), "1");
  EXPECT_EQ(next.outcome.context->executions, 2u);
  EXPECT_THAT(next.outcome.context->note, HasSubstr("undone"));
  EXPECT_THAT(next.outcome.context->note, ::testing::Not(HasSubstr("stale")));
}

TEST_F(InterpreterTest, WhatCannotBeTakenBackIsSaidToBeStaleOnce) {
  for (std::uint64_t i = 0; i < 3; ++i) run_known(kInc, i);
  const auto two_ahead = run_known(kRead, 1);
  EXPECT_EQ(value(two_ahead), "3");
  EXPECT_THAT(
      two_ahead.outcome.context->note,
      HasSubstr("stale: the sandbox knows of 1 runs of this context and its interpreter of 3"));
  EXPECT_EQ(two_ahead.outcome.context->executions, 2u);
  EXPECT_THAT(run_known(kRead, 2).outcome.context->note, IsEmpty());
  const auto behind = run_known(kRead, 7);
  EXPECT_THAT(behind.outcome.context->note, HasSubstr("stale"));
  EXPECT_EQ(behind.outcome.context->executions, 8u);
}

}  // namespace
}  // namespace sw::interpreter
