// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// The rules, with an engine without Wasm: what is kept, saved, put back and told after each kind of
// run.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "interpreter/interpreter_fixture.h"
#include "sandbox_workers/protocol/answers.h"

namespace sw::interpreter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// --- contexts

TEST_F(InterpreterTest, AContextIsMadeOnceAndOnlyEightOfThem) {
  const auto made = request("POST", "/contexts", R"({"id":"d"})");
  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(json(made).at("id"), "d");
  EXPECT_EQ(json(made).at("cwd"), "/workspace");
  EXPECT_EQ(json(made).at("createdAt"), "2023-11-14T22:13:20.000Z");
  EXPECT_EQ(create("d").status, 400);
  EXPECT_THAT(message(create("d")), HasSubstr("already exists"));
  for (int i = 2; i < 8; ++i) EXPECT_EQ(create(std::to_string(i)).status, 201);
  EXPECT_THAT(message(create("d")),
              HasSubstr("Cannot create more than 8"));  // before it looks for duplicates
}

TEST_F(InterpreterTest, WhatACreationMustNotSay) {
  const auto refused = [&](const std::string& body) {
    return message(request("POST", "/contexts", body));
  };
  EXPECT_EQ(refused("{"), "Invalid JSON");
  EXPECT_EQ(refused("[]"), "Expected an object");
  EXPECT_EQ(refused("{}"), "id must be a non-empty string of at most 128 characters");
  EXPECT_EQ(refused(R"({"id":7})"), "id must be a non-empty string of at most 128 characters");
  EXPECT_EQ(refused(R"({"id":""})"), "id must be a non-empty string of at most 128 characters");
  EXPECT_EQ(refused(R"({"id":")" + std::string(129, 'x') + "\"}"),
            "id must be a non-empty string of at most 128 characters");
  EXPECT_EQ(refused(R"({"id":"a\u0000b"})"), "id must not contain a NUL character");
  EXPECT_EQ(refused(R"({"id":"d","cwd":""})"), "cwd must be a non-empty string");
  EXPECT_EQ(refused(R"({"id":"d","cwd":"../x"})"), "Path escapes /workspace: ../x");
  EXPECT_EQ(json(request("POST", "/contexts", R"({"id":"d","cwd":"x/../y"})")).at("cwd"),
            "/workspace/y");
  protocol::Request large{
      .method = "POST", .path = "/contexts", .headers = {{"Content-Length", "98305"}}};
  EXPECT_EQ(protocol::serve_interpreter(*interpreter_, large, 0).status, 413);
}

TEST_F(InterpreterTest, ADeletedContextIsGoneWithItsMemory) {
  EXPECT_EQ(value(run(kInc)), "1");
  EXPECT_EQ(request("DELETE", "/contexts/c").status, 200);
  const auto again = request("DELETE", "/contexts/c");
  EXPECT_EQ(again.status, 404);
  EXPECT_EQ(json(again).at("code"), "CONTEXT_NOT_FOUND");
  EXPECT_EQ(json(again).at("context").at("contextId"), "c");
  EXPECT_EQ(engine_->alive, 0);
  EXPECT_EQ(refusal(ask(kRead)).code, ErrorCode::kContextNotFound);
  EXPECT_EQ(create("c").status, 201);
  EXPECT_EQ(value(run(kInc)), "1");
}

TEST_F(InterpreterTest, IdsInPathsAreDecoded) {
  EXPECT_EQ(create("a b/c").status, 201);
  EXPECT_EQ(request("DELETE", "/contexts/a%20b%2Fc").status, 200);
  EXPECT_EQ(request("DELETE", "/contexts/%zz").status, 404);
}

TEST_F(InterpreterTest, DeletingTheInterpreterWipesEverythingAndMakesNothing) {
  run(kInc);
  const auto wiped = request("DELETE", "/");
  EXPECT_EQ(wiped.status, 200);
  EXPECT_EQ(wiped.body, R"({"success":true})");
  EXPECT_EQ(refusal(ask(kRead)).code, ErrorCode::kContextNotFound);
  EXPECT_EQ(engine_->alive, 0);
  EXPECT_EQ(request("DELETE", "/").status, 200);
  EXPECT_FALSE(*storage_->find({.class_name = "interpreter_fake", .id = "key"}))
      << "a trace is left";
}

TEST_F(InterpreterTest, UnknownPathsAndMethodsAreToldInJson) {
  EXPECT_EQ(message(request("GET", "/nothing")), "Not found");
  EXPECT_EQ(request("GET", "/contexts/c/nothing").status, 404);
  EXPECT_EQ(request("GET", "/contexts//x").status, 404);
  const auto put = request("PUT", "/contexts");
  EXPECT_EQ(put.status, 405);
  EXPECT_EQ(*protocol::find_header(put.headers, "Allow"), "GET, POST");
  EXPECT_EQ(*protocol::find_header(put.headers, "cache-control"), "no-store");
  EXPECT_EQ(*protocol::find_header(request("GET", "/").headers, "allow"), "DELETE");
}

// --- runs

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

// --- what is kept, by how the run ended and what was asked for

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
    args.run.files = std::make_shared<const RunFiles>(RunFiles{sandbox_.manifest(), get_files});
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
  args.run.files = files({.disabled = true});
  const ExecuteResponse refused = ask(kWriteA, args).value();
  EXPECT_EQ(refused.outcome.error->name, "EACCES");
  EXPECT_THAT(refused.outcome.files->files, IsEmpty());
  const auto allowed = run(kWriteA);
  EXPECT_FALSE(allowed.outcome.error);
  EXPECT_THAT(asked_.back(), ElementsAre("/workspace/a"))
      << "the empty manifest emptied the mirror";
}

// --- the end of a context

TEST_F(InterpreterTest, EndingAContextRunsItsExitHandlersAndRemovesIt) {
  run(kInc);
  protocol::ExecuteArgs args;
  args.run.ends_context = true;
  const ExecuteResponse ended = take(ask("", args));
  EXPECT_FALSE(ended.outcome.error);
  EXPECT_EQ(printed_.out, "ended at 1");
  EXPECT_EQ(sandbox_.read("ended", FileEncoding::kUtf8)->content, "ended at 1");
  EXPECT_EQ(engine_->alive, 0);
  EXPECT_EQ(refusal(ask(kInc)).code, ErrorCode::kContextNotFound);
}

TEST_F(InterpreterTest, AContextEndsFromItsSavedMemory) {
  run(kInc);
  pool_->clear(interpreter_.get());
  protocol::ExecuteArgs args;
  args.run.ends_context = true;
  take(ask("", args));
  EXPECT_EQ(printed_.out, "ended at 1");
}

TEST_F(InterpreterTest, AContextThatNeverRanEndsWithoutAnInstance) {
  protocol::ExecuteArgs args;
  args.run.ends_context = true;
  take(ask("", args));
  EXPECT_EQ(printed_.out, "");
  EXPECT_EQ(refusal(ask(kInc)).code, ErrorCode::kContextNotFound);
}

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

// --- versions

TEST_F(InterpreterTest, ForksUndoAndCheckpointsOverHttp) {
  run(kInc);
  run(kInc);
  const auto forked = request("POST", "/contexts/c/fork", R"({"id":"f"})");
  EXPECT_EQ(forked.status, 201);
  EXPECT_EQ(json(forked).at("executions"), 2);
  EXPECT_EQ(value(run(kInc, "f")), "3");
  EXPECT_EQ(value(run(kRead)), "2");
  EXPECT_EQ(request("POST", "/contexts/c/fork", R"({"id":"f"})").status, 400);
  EXPECT_EQ(request("POST", "/contexts/absent/fork", R"({"id":"g"})").status, 404);

  EXPECT_EQ(request("POST", "/contexts/c/checkpoints", R"({"name":"two"})").status, 201);
  EXPECT_EQ(value(run(kInc)), "3");
  EXPECT_EQ(value(run(kInc)), "4");
  EXPECT_EQ(request("POST", "/contexts/c/undo", R"({"runs":1})").status, 200);
  EXPECT_EQ(value(run(kRead)), "3");
  EXPECT_EQ(request("POST", "/contexts/c/undo", R"({"runs":0})").status, 400);
  EXPECT_EQ(request("POST", "/contexts/c/undo", R"({"runs":99})").status, 400);
  EXPECT_EQ(request("POST", "/contexts/c/restore", R"({"name":"two"})").status, 200);
  EXPECT_EQ(value(run(kRead)), "2");
  EXPECT_EQ(request("POST", "/contexts/c/restore", R"({"name":"absent"})").status, 404);
  const auto list = json(request("GET", "/contexts/c/checkpoints"));
  EXPECT_EQ(list.at("checkpoints").as_array().size(), 1u);
  EXPECT_EQ(list.at("checkpoints").at(0).at("name"), "two");
  EXPECT_EQ(request("DELETE", "/contexts/c/checkpoints/two").status, 200);
  EXPECT_EQ(request("DELETE", "/contexts/c/checkpoints/two").status, 404);
  const auto contexts = json(request("GET", "/contexts"));
  EXPECT_EQ(contexts.at("contexts").as_array().size(), 2u);
}

TEST_F(InterpreterTest, VersionsOfAContextThatWasNeverSavedAreRefused) {
  EXPECT_THAT(message(request("POST", "/contexts/c/undo", "{}")), HasSubstr("no saved memory"));
  EXPECT_EQ(request("POST", "/contexts/c/checkpoints", R"({"name":"x"})").status, 400);
  EXPECT_EQ(request("POST", "/contexts/c/fork", R"({"id":"f"})").status, 201);
}

// --- residency and expiry

TEST_F(InterpreterTest, ContextsStayResidentWithinTheLimitsAndTheLeastRecentlyUsedGoes) {
  interpreter_.reset();
  pool_ = std::make_unique<ResidencyPool>(ResidencyLimits{.instances_max = 2});
  restart();
  for (const char* id : {"d", "e"}) EXPECT_EQ(create(id).status, 201);
  run(kInc);
  run(kInc, "d");
  run(kInc);
  run(kInc, "e");
  EXPECT_EQ(engine_->alive, 2);
  EXPECT_EQ(run(kInc).outcome.context->state, ContextState::kLive);
  const auto restored = run(kInc, "d");
  EXPECT_EQ(restored.outcome.context->state, ContextState::kRestored);
  EXPECT_EQ(value(restored), "2");
}

TEST_F(InterpreterTest, AnInterpreterThatGoesTakesItsInstancesAlong) {
  run(kInc);
  EXPECT_EQ(pool_->stats().instances, 1u);
  restart();
  EXPECT_EQ(pool_->stats().instances, 0u);
  EXPECT_EQ(pool_->stats().bytes, 0u);
}

TEST_F(InterpreterTest, WhatNobodyUsesIsDeletedByTheAlarm) {
  EXPECT_EQ(request("DELETE", "/").status, 200);
  options_.idle_ttl = std::chrono::milliseconds(1000);
  restart();
  EXPECT_EQ(create("c").status, 201);
  run(kInc);
  clock_.advance(std::chrono::milliseconds(500));
  run(kInc);
  clock_.advance(std::chrono::milliseconds(600));
  EXPECT_TRUE(interpreter_->on_alarm({}).ok());
  EXPECT_EQ(value(run(kInc)), "3");
  clock_.advance(std::chrono::milliseconds(1001));
  EXPECT_TRUE(interpreter_->on_alarm({}).ok());
  EXPECT_EQ(refusal(ask(kRead)).code, ErrorCode::kContextNotFound);
  EXPECT_EQ(engine_->alive, 0);
}

TEST_F(InterpreterTest, WithoutATimeToLiveNothingIsDeleted) {
  options_.idle_ttl = std::chrono::milliseconds(0);
  restart();
  run(kInc);
  EXPECT_EQ(storage_->alarms_until(object::Time::max(), 10)->size(), 0u);
  clock_.advance(std::chrono::hours(100'000));
  EXPECT_TRUE(interpreter_->on_alarm({}).ok());
  EXPECT_EQ(value(run(kInc)), "2");
}

}  // namespace
}  // namespace sw::interpreter
