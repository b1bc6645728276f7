// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What a run answers, and what becomes of its memory and files.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "interpreter/interpreter_fixture.h"

namespace sw::interpreter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST_F(InterpreterTest, TheAnswerHasCountersFolderSnapshotAndFiles) {
  const auto first = run(kInc);
  EXPECT_EQ(first.outcome.context->state, ContextState::kFresh);
  EXPECT_EQ(first.outcome.context->note, "the context is new");
  const auto second = run(kWriteA);
  EXPECT_EQ(second.outcome.context->state, ContextState::kLive);
  EXPECT_THAT(second.outcome.context->note, IsEmpty());
  EXPECT_EQ(second.outcome.context->executions, 2u);
  EXPECT_EQ(second.outcome.cwd, "/workspace");
  EXPECT_TRUE(second.outcome.context->snapshot_ms);
  ASSERT_TRUE(second.snapshot);
  EXPECT_EQ(second.snapshot->build, "build-1");
  EXPECT_FALSE(second.snapshot->stale);
  EXPECT_EQ(second.snapshot->pages, 1u);
  EXPECT_EQ(second.snapshot->bytes, 4096u);
  EXPECT_GT(second.snapshot->stored_bytes, 0u);
  ASSERT_EQ(second.outcome.files->files.size(), 1u);
  EXPECT_EQ(second.outcome.files->files[0].path, "/workspace/a");
}

TEST_F(InterpreterTest, AnotherProcessGoesOn) {
  EXPECT_EQ(value(run(kInc)), "1");
  restart();
  const auto restored = run(kInc);
  EXPECT_EQ(value(restored), "2");
  EXPECT_EQ(restored.outcome.context->state, ContextState::kRestored);
  EXPECT_THAT(restored.outcome.context->note, IsEmpty());
}

TEST_F(InterpreterTest, AnotherBuildBeginsFreshAndKeepsTheOldMemoryUntilItHasItsOwn) {
  EXPECT_EQ(value(run(kInc)), "1");
  restart("build-2");
  const auto ended = run(kInvalidate);
  EXPECT_EQ(value(ended), "1");
  EXPECT_EQ(ended.outcome.context->state, ContextState::kFresh);
  EXPECT_THAT(ended.outcome.context->note, HasSubstr("another build (build-1)"));
  EXPECT_EQ(ended.snapshot->build, "build-1");
  EXPECT_TRUE(ended.snapshot->stale);

  restart("build-1");
  EXPECT_EQ(value(run(kInc)), "2") << "the old build finds its memory";

  restart("build-2");
  EXPECT_EQ(value(run(kInc)), "1");
  const auto replaced = run(kInc);
  EXPECT_EQ(replaced.snapshot->build, "build-2");
  EXPECT_FALSE(replaced.snapshot->stale);
  EXPECT_EQ(replaced.outcome.context->executions, 5u);
}

TEST_F(InterpreterTest, AnErrorKeepsWhatAnotherProcessFinds) {
  run(kWriteA);
  const auto failed = run(kWriteAFail);
  EXPECT_EQ(failed.outcome.files->files.size(), 1u);
  EXPECT_EQ(file_a(), "bad");
  restart();
  EXPECT_EQ(value(run(kInc)), "2");
  EXPECT_EQ(file_a(), "bad");
}

TEST_F(InterpreterTest, ARolledBackRunIsToldAndGoesOnFromTheOneBeforeIt) {
  ASSERT_TRUE(sandbox_.make_directory("d", Depth::kOne, 1).ok());
  run(R"({"op":"chdir","cwd":"/workspace/d","then":"inc"})");
  const auto failed =
      run(R"({"op":"chdir","cwd":"/workspace/e","then":"error"})", AfterError::kRollback);
  EXPECT_THAT(failed.outcome.context->note,
              HasSubstr("rolled back: memory and files are as before this run"));
  EXPECT_EQ(failed.outcome.cwd, "/workspace/d");
  EXPECT_EQ(engine_->alive, 0);
  const auto next = run(kInc);
  EXPECT_EQ(next.outcome.context->state, ContextState::kRestored);
  EXPECT_THAT(next.outcome.context->note, IsEmpty());
  EXPECT_EQ(value(next), "2");
  EXPECT_EQ(next.outcome.context->executions, 3u);
  EXPECT_EQ(request("POST", "/contexts/c/undo", R"({"runs":1})").status, 200);
  EXPECT_EQ(value(run(kRead)), "1") << "undo counts the runs that were saved";
}

TEST_F(InterpreterTest, AFirstRunThatIsRolledBackLeavesAFreshContext) {
  const auto failed = run(write_a_then("error"), AfterError::kRollback);
  EXPECT_THAT(failed.outcome.context->note, HasSubstr("the next one starts fresh"));
  EXPECT_EQ(failed.outcome.context->executions, 1u);
  EXPECT_FALSE(failed.snapshot);
  EXPECT_EQ(file_a(), "none");
  const auto next = run(kInc);
  EXPECT_EQ(next.outcome.context->state, ContextState::kFresh);
  EXPECT_THAT(next.outcome.context->note, HasSubstr("no run of the context is saved"));
  EXPECT_EQ(value(next), "1");
}

TEST_F(InterpreterTest, RollingBackAfterARunThatCouldNotBeSavedSaysSo) {
  run(kInc);
  run(kHold);
  const auto failed = run(kError, AfterError::kRollback);
  EXPECT_THAT(failed.outcome.context->note, HasSubstr("the memory is that of run 1"));
  EXPECT_TRUE(failed.snapshot->stale);
  const auto next = run(kRead);
  EXPECT_THAT(next.outcome.context->note, HasSubstr("stale: the memory is that of run 1"));
  EXPECT_EQ(value(next), "1");
}

TEST_F(InterpreterTest, TheNextRunAfterALostOneIsToldWhoseMemoryItHas) {
  run(kInc);
  const auto ended = run(R"({"op":"chdir","cwd":"/workspace/e","then":"invalidate"})");
  EXPECT_THAT(ended.outcome.context->note,
              HasSubstr("the memory of this run was not saved, and its files were rolled back"));
  EXPECT_EQ(ended.outcome.cwd, "/workspace");
  const auto restored = run(kRead);
  EXPECT_THAT(restored.outcome.context->note, HasSubstr("stale: the memory is that of run 1"));
  EXPECT_FALSE(restored.snapshot->stale) << "the memory is that of this run now";
}

TEST_F(InterpreterTest, ACellIsCalledByTheCountOfItsContext) {
  const auto name = [](const ExecuteResponse& response) {
    return response.outcome.error->traceback.at(0);
  };
  EXPECT_EQ(name(run(kError)), "<cell 1>");
  run(kInvalidate);
  EXPECT_EQ(name(run(kError)), "<cell 3>") << "the instance was restored after its first cell";
  EXPECT_EQ(name(run(kError, AfterError::kRollback)), "<cell 4>");
  EXPECT_EQ(name(run(kError)), "<cell 5>");
  restart("build-2");
  EXPECT_EQ(name(run(kError)), "<cell 6>") << "the instance is fresh";
}

TEST_F(InterpreterTest, AProgramIsCalledByItsName) {
  protocol::ExecuteArgs args;
  args.run.file_name = "prog.py";
  EXPECT_EQ(take(ask(kError, args)).outcome.error->traceback.at(0), "prog.py");
  args.run.file_name = std::string("a\0b", 3);
  EXPECT_THAT(refusal(ask(kError, args)).message, HasSubstr("NUL"));
}

TEST_F(InterpreterTest, AnInvalidInstanceIsDroppedAndItsContextRestored) {
  run(kInc);
  const auto ended = run(kInvalidate);
  EXPECT_FALSE(ended.outcome.context->snapshot_ms);
  EXPECT_TRUE(ended.snapshot->stale);
  EXPECT_EQ(engine_->alive, 0);
  const auto restored = run(kInc);
  EXPECT_EQ(value(restored), "2");
  EXPECT_EQ(restored.outcome.context->state, ContextState::kRestored);
  EXPECT_THAT(restored.outcome.context->note, HasSubstr("stale"));
}

TEST_F(InterpreterTest, AnInvalidInstanceWithoutAnythingSavedBeginsFresh) {
  run(kInvalidate);
  const auto fresh = run(kInc);
  EXPECT_EQ(value(fresh), "1");
  EXPECT_EQ(fresh.outcome.context->state, ContextState::kFresh);
  EXPECT_THAT(fresh.outcome.context->note, HasSubstr("no run of the context is saved"));
}

TEST_F(InterpreterTest, AFaultOfTheEngineIsAnOutcomeAndCostsTheInstance) {
  run(kInc);
  const auto fault = run(kFault);
  EXPECT_EQ(fault.outcome.error->name, kEngineError);
  EXPECT_EQ(fault.outcome.context->executions, 2u);
  EXPECT_EQ(fault.outcome.cwd, "/workspace");
  EXPECT_FALSE(fault.outcome.context->snapshot_ms);
  EXPECT_EQ(engine_->alive, 0);
  EXPECT_EQ(value(run(kInc)), "2");
}

TEST_F(InterpreterTest, WhatCannotBeSavedIsStaleUntilItCan) {
  run(kInc);
  const auto held = run(kHold);
  EXPECT_FALSE(held.outcome.context->snapshot_ms);
  EXPECT_TRUE(held.snapshot->stale);
  run(kError);
  EXPECT_EQ(value(run(kWriteA)), "2");
  EXPECT_EQ(sandbox_.read("a", FileEncoding::kUtf8)->content, "new")
      << "files are kept all the same";
  const auto let_go = run(kLetGo);
  EXPECT_TRUE(let_go.outcome.context->snapshot_ms);
  EXPECT_FALSE(let_go.snapshot->stale);
  restart();
  EXPECT_EQ(value(run(kRead)), "2");
}

// An instance tells of a change once.
TEST_F(InterpreterTest, WhatASaveCouldNotStoreIsStoredByTheNextThatCan) {
  run(kInc);
  for (const char* code : {R"({"op":"inc","then":"heavy"})", kInc}) {
    const auto too_large = run(code);
    EXPECT_THAT(too_large.outcome.context->note, HasSubstr("stale: the memory could not be saved"));
    EXPECT_TRUE(too_large.snapshot->stale);
  }
  const auto saved = run(R"({"op":"light"})");
  EXPECT_FALSE(saved.snapshot->stale);
  restart();
  EXPECT_EQ(value(run(kRead)), "3");
}

TEST_F(InterpreterTest, AContextThatWasNeverSavedHasNoSnapshot) {
  const auto held = run(kHold);
  EXPECT_FALSE(held.snapshot);
  EXPECT_EQ(json(request("GET", "/contexts/c")).at("snapshot"), nullptr);
}

TEST_F(InterpreterTest, OnlyAFolderOfTheWorkspaceIsTold) {
  ASSERT_TRUE(sandbox_.make_directory("d", Depth::kOne, 1).ok());
  ASSERT_TRUE(sandbox_.write("f", "", FileEncoding::kUtf8, 1).ok());
  const auto told = [&](const char* cwd) {
    return run(fmt::format(R"({{"op":"chdir","cwd":"{}"}})", cwd)).outcome.cwd;
  };
  EXPECT_EQ(told("/workspace/d"), "/workspace/d");
  EXPECT_EQ(told("/workspace/gone"), "/workspace");
  EXPECT_EQ(told("/workspace/f"), "/workspace");
  EXPECT_EQ(told("/tmp"), "/workspace");
  EXPECT_EQ(told("/workspace/d/../../etc"), "/workspace");
}

TEST_F(InterpreterTest, TheFolderIsKeptAndAFreshInstanceBeginsThere) {
  ASSERT_TRUE(sandbox_.make_directory("d", Depth::kOne, 1).ok());
  EXPECT_EQ(run(R"({"op":"chdir","cwd":"/workspace/d"})").outcome.cwd, "/workspace/d");
  EXPECT_EQ(run(kError).outcome.cwd, "/workspace/d");
  restart("build-2");
  EXPECT_EQ(run(kRead).outcome.cwd, "/workspace/d");
}

TEST_F(InterpreterTest, AFailedBootIsNoRun) {
  engine_->fail_boot = true;
  const auto failed = refusal(ask(kInc));
  EXPECT_EQ(status(failed), 502);
  EXPECT_THAT(failed.message, HasSubstr("Engine execution failed"));
  engine_->fail_boot = false;
  EXPECT_EQ(run(kInc).outcome.context->executions, 1u);
}

TEST_F(InterpreterTest, ARunThatCannotBeStoredIsNotAnsweredAndNotKept) {
  run(kInc);
  disk_.fail_commits(Error{ErrorCode::kUnavailable, "disk full", 0});
  const auto failed = refusal(ask(kInc));
  EXPECT_EQ(status(failed), 503);
  EXPECT_THAT(failed.message, HasSubstr("disk full"));
  disk_.fail_commits(std::nullopt);
  const auto next = run(kInc);
  EXPECT_EQ(value(next), "2");
  EXPECT_EQ(next.outcome.context->executions, 2u);
}

TEST_F(InterpreterTest, RequestsThatCannotBeAreRefusedInOrder) {
  protocol::ExecuteArgs args;
  args.run.context = "absent";
  args.run.env = {{"A", std::string("x\0y", 3)}};
  EXPECT_EQ(refusal(ask(" \n", args)).message, "Non-empty code is required");
  const auto large = refusal(ask(std::string(65'537, 'x'), args));
  EXPECT_EQ(status(large), 413);
  EXPECT_EQ(large.message, "Code exceeds 64 KiB");
  EXPECT_THAT(refusal(ask(kInc, args)).message, HasSubstr("NUL"));
  args.run.env.clear();
  EXPECT_EQ(refusal(ask(kInc, args)).code, ErrorCode::kContextNotFound);
  EXPECT_EQ(asked_.size(), 0u);
}

// --- files

TEST_F(InterpreterTest, OnlyMissingFilesAreAskedForAndAtMostOnce) {
  ASSERT_TRUE(sandbox_.write("a", "1", FileEncoding::kUtf8, 1).ok());
  ASSERT_TRUE(sandbox_.write("b", "2", FileEncoding::kUtf8, 1).ok());
  run(kInc);
  EXPECT_THAT(asked_, ElementsAre(UnorderedElementsAre("/workspace/a", "/workspace/b")));
  run(kInc);
  EXPECT_EQ(asked_.size(), 1u);
  ASSERT_TRUE(sandbox_.write("c", "3", FileEncoding::kUtf8, 1).ok());
  run(kInc);
  EXPECT_THAT(asked_.back(), ElementsAre("/workspace/c"));
}

TEST_F(InterpreterTest, WrongAnswersOfTheSandboxAreRefused) {
  ASSERT_TRUE(sandbox_.write("a", "1", FileEncoding::kUtf8, 1).ok());
  const auto run_with = [&](const GetFiles& get_files) {
    protocol::ExecuteArgs args;
    args.run.files = std::make_shared<const RunFiles>(
        RunFiles{.manifest = manifest_of(sandbox_.remember()), .get_files = get_files});
    return refusal(ask(kInc, args));
  };
  const auto nothing = run_with([](const auto&) { return std::vector<WorkspaceFile>(); });
  EXPECT_EQ(status(nothing), 500);
  EXPECT_EQ(nothing.message, "Sandbox did not provide 1 workspace file(s)");
  const auto other = run_with([](const auto&) {
    return std::vector<WorkspaceFile>{{.path = "/workspace/other", .data = {}, .updated_at_ms = 0}};
  });
  EXPECT_EQ(status(other), 500);
  EXPECT_EQ(other.message, "Sandbox returned an invalid workspace file entry");
  const auto failed = run_with([](const auto&) { return Error{.message = "gone"}; });
  EXPECT_EQ(failed.message, "Sandbox failed to provide files: gone");
  EXPECT_EQ(run(kInc).outcome.context->executions, 1u);
}

TEST_F(InterpreterTest, ADisabledWorkspaceIsDisabledBeforeTheInstanceIsThere) {
  ASSERT_TRUE(sandbox_.write("a", "1", FileEncoding::kUtf8, 1).ok());
  run(kInc);
  protocol::ExecuteArgs args;
  args.run.files = std::make_shared<const RunFiles>(RunFiles{.disabled = true});
  const ExecuteResponse refused = ask(kWriteA, args).value();
  EXPECT_EQ(refused.outcome.error->name, "EACCES");
  EXPECT_THAT(refused.outcome.files->files, IsEmpty());
  const auto allowed = run(kWriteA);
  EXPECT_FALSE(allowed.outcome.error);
  EXPECT_THAT(asked_.back(), ElementsAre("/workspace/a"))
      << "the empty manifest emptied the mirror";
}

}  // namespace
}  // namespace sw::interpreter
