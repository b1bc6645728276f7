// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What happens beside a run, and what a run is told.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "sandbox/names.h"
#include "sandbox/sandbox_runs_fixture.h"

namespace sw::sandbox {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// --- side by side

TEST_F(SandboxRunsTest, RunsOfTwoContextsGoOnSideBySide) {
  make("a");
  make("b");
  Future first = hold("a", "hold a");
  Future second = hold("b", "hold b");
  gate.open();
  EXPECT_EQ(first.get()->outcome.context->id, "a");
  EXPECT_EQ(second.get()->outcome.context->id, "b");
}

TEST_F(SandboxRunsTest, RunsOfOneContextTakeTurnsInTheOrderTheyCame) {
  make("a");
  Future first = hold("a", "hold 1");
  std::vector<Future> others;
  for (const char* code : {"2", "3", "4"}) others.push_back(start_in("a", code));
  gate.open();
  EXPECT_EQ(first.get()->outcome.context->executions, 1u);
  for (std::uint64_t i = 0; i < others.size(); ++i) {
    const auto finished = others[i].get();
    EXPECT_EQ(finished->outcome.context->executions, i + 2);
    EXPECT_EQ(finished->outcome.value->text, std::to_string(i + 2));
  }
}

TEST_F(SandboxRunsTest, ARunSeesTheFilesAsTheyWereWhenItBegan) {
  make("a");
  make("b");
  write("f", "old");
  Future held = hold("a", "hold a");
  write("f", "new");
  ASSERT_TRUE(run("b", "write f newer\nwrite g made").ok());
  gate.open();
  ASSERT_TRUE(held.get().ok());
  EXPECT_EQ(seen_by("a", "f"), "old");
  EXPECT_EQ(seen_by("a", "g"), "file not found");
  EXPECT_EQ(read("f"), "newer") << "what the run left alone is not put back";
  ASSERT_TRUE(run("a", "1").ok());
  EXPECT_EQ(seen_by("a", "f"), "newer");
  EXPECT_EQ(seen_by("a", "g"), "made");
}

TEST_F(SandboxRunsTest, OfTwoRunsThatWroteAFileTheLaterCommitWins) {
  make("a");
  make("b");
  Future first = hold("a", "hold a", "write f a\nwrite a 1\nfolder x\nwrite x/y 1");
  Future second = hold("b", "hold b", "write f b\nwrite b 1\nwrite x 1");
  gate.open("hold b");
  ASSERT_TRUE(second.get().ok());
  EXPECT_EQ(read("f"), "b");
  EXPECT_EQ(read("x"), "1");
  gate.open("hold a");
  ASSERT_TRUE(first.get().ok());
  restart();
  EXPECT_EQ(read("f"), "a");
  EXPECT_EQ(read("x/y"), "1");
  EXPECT_EQ(read("a") + read("b"), "11");
}

TEST_F(SandboxRunsTest, AFolderThatARunRemovedStaysWithWhatAnotherPutIntoIt) {
  make("a");
  make("b");
  ASSERT_TRUE(run("a", "folder d\nwrite d/old 1\nlink l d").ok());
  Future remover = hold("a", "hold a", "remove d\nremove l");
  ASSERT_TRUE(run("b", "write d/new 2").ok());
  gate.open();
  ASSERT_TRUE(remover.get().ok());
  EXPECT_EQ(read("d/old"), "file not found");
  EXPECT_EQ(read("d/new"), "2");
  EXPECT_EQ(read("l"), "file not found");
  restart();
  EXPECT_EQ(read("d/new"), "2");
}

// --- what does not wait

TEST_F(SandboxRunsTest, NothingElseWaitsForARun) {
  make("a");
  make("b");
  write("f", "text");
  Future held = hold("a", "hold a");
  EXPECT_EQ(read("f"), "text");
  write("g", "1");
  EXPECT_EQ(sandbox().info()->files, 2u);
  EXPECT_THAT(context_ids(), ElementsAre("a", "b"));
  EXPECT_EQ(sandbox().context("a")->executions, 0u);
  EXPECT_TRUE(sandbox().set_env({{"A", "1"}}).ok());
  EXPECT_TRUE(sandbox().undo("b", 1).ok());
  EXPECT_TRUE(sandbox().fork("b", "c").ok());
  EXPECT_TRUE(sandbox().delete_context("b", printed_at_end).ok());
  EXPECT_TRUE(sandbox().checkpoints("a").ok());
  make("d");
  EXPECT_TRUE(run("d", "1").ok());
  EXPECT_TRUE(start({.code = "1"}, "RUBY").get().ok());
  EXPECT_EQ(sandbox()
                .fetch({.method = "POST",
                        .path = "/files",
                        .headers = {{"x-sandbox-id", "demo"}},
                        .body = R"({"op":"read","path":"f"})"})
                .status,
            200);
  EXPECT_EQ(held.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  gate.open();
  EXPECT_TRUE(held.get().ok());
}

TEST_F(SandboxRunsTest, WhatChangesAContextsMemoryWaitsForItsRun) {
  make("a");
  Future held = hold("a", "hold a");
  auto undone = std::async(std::launch::async, [&] { return sandbox().undo("a", 1); });
  gate.open();
  EXPECT_TRUE(held.get().ok());
  EXPECT_TRUE(undone.get().ok());
  EXPECT_EQ(sandbox().context("a")->interpreter_executions, 1u)
      << "what the Interpreter said after the run";
}

// --- contexts that are made at once

TEST_F(SandboxRunsTest, TwoFirstRunsAtOnceMakeOneContext) {
  hold_calls = "create";
  const auto first_run = [&] { return start({.code = "1"}, "PYTHON").get(); };
  auto one = std::async(std::launch::async, first_run);
  auto other = std::async(std::launch::async, first_run);
  calls.wait_for("create");
  EXPECT_EQ(read("f"), "file not found") << "files do not wait for it";
  calls.open();
  const auto first = one.get();
  const auto second = other.get();
  EXPECT_EQ(first->outcome.context->id, second->outcome.context->id);
  EXPECT_EQ(first->outcome.context->executions + second->outcome.context->executions, 3u);
  EXPECT_EQ(calls.arrived("create"), 1);
}

TEST_F(SandboxRunsTest, OfSeveralThatMakeAContextOfOneNameOneDoes) {
  make("a");
  make("b");
  const auto results = [&](const std::vector<std::function<bool()>>& makers) {
    std::vector<std::future<bool>> made;
    for (const auto& maker : makers) made.push_back(std::async(std::launch::async, maker));
    std::size_t done = 0;
    for (auto& one : made) done += one.get() ? 1U : 0U;
    return done;
  };
  const auto create = [&] {
    return sandbox().create_context({.binding = "PYTHON", .id = "twin"}).ok();
  };
  EXPECT_EQ(results({[&] { return sandbox().fork("a", "twin").ok(); },
                     [&] { return sandbox().fork("b", "twin").ok(); }, create,
                     [&] { return sandbox().fork("a", "twin").ok(); }}),
            1u);
  EXPECT_THAT(python->calls, ::testing::Not(Contains("remove twin"))) << "one took another's away";
  EXPECT_THAT(context_ids(), ElementsAre("a", "b", "twin"));
}

TEST_F(SandboxRunsTest, ContextsThatAreMadeAtOnceKeepToTheLimit) {
  parts.options.contexts_max = 3;
  std::vector<std::future<bool>> made;
  for (int i = 0; i < 8; ++i) {
    made.push_back(std::async(
        std::launch::async, [&] { return sandbox().create_context({.binding = "PYTHON"}).ok(); }));
  }
  int count = 0;
  for (auto& one : made) count += one.get() ? 1 : 0;
  EXPECT_EQ(count, 3);
  EXPECT_THAT(context_ids(), SizeIs(3));
}

// --- the profile "compat"

TEST_F(SandboxRunsTest, WithTheProfileCompatAllRunsOfASandboxTakeTurns) {
  parts.options.profile = protocol::kCompatProfile;
  make("a");
  make("b");
  Future first = hold("a", "hold a", "write f 1");
  Future second = start_in("b", "write g 2");
  Future third = start({.code = "3"}, "RUBY");
  EXPECT_EQ(guests.stats().in_progress, 1u);
  EXPECT_EQ(guests.stats().queued, 2u);
  EXPECT_EQ(read("f"), "file not found");
  gate.open();
  EXPECT_TRUE(first.get().ok());
  EXPECT_TRUE(second.get().ok());
  EXPECT_TRUE(third.get().ok());
  EXPECT_EQ(seen_by("b", "f"), "1") << "a run sees what those before it wrote";
}

TEST_F(SandboxRunsTest, WithTheProfileCompatFilesGoBackAfterAnErrorUnlessTheRunSays) {
  parts.options.profile = protocol::kCompatProfile;
  make("a");
  python->during_run = [](Workspace&, protocol::ExecuteResponse& response) {
    response.outcome.ending = Ending::kGuestError;
    response.outcome.error =
        GuestError{.name = "Error", .message = {}, .traceback = {}, .line_number = {}};
  };
  ASSERT_TRUE(run("a", "write f 1").ok());
  EXPECT_EQ(python->runs.back().run.on_error, AfterError::kFilesBack);
  EXPECT_EQ(read("f"), "file not found");
  ASSERT_TRUE(
      start({.code = "write f 2", .context = "a", .on_error = AfterError::kKeep}).get().ok());
  EXPECT_EQ(read("f"), "2");
}

// --- what a run is told

TEST_F(SandboxRunsTest, ARunsEnvironmentGoesOverItsContextsAndThatOverTheSandboxs) {
  ASSERT_TRUE(sandbox().set_env({{"A", "sandbox"}, {"B", "sandbox"}, {"C", "sandbox"}}).ok());
  ASSERT_TRUE(sandbox()
                  .create_context(
                      {.binding = "PYTHON", .id = "a", .env = {{"B", "context"}, {"D", "context"}}})
                  .ok());
  ASSERT_TRUE(start({.code = "1",
                     .context = "a",
                     .env = {{"C", "run"}, {"D", "run"}, {"E", "run"}},
                     .unset_env = {"A", "B", "E", "NOWHERE"}})
                  .get()
                  .ok());
  EXPECT_THAT(python->runs.back().run.env,
              ElementsAre(Pair("C", "run"), Pair("D", "run"), Pair("E", "run")));
  EXPECT_THAT(python->runs.back().run.unset_env, IsEmpty());
  ASSERT_TRUE(run("a", "1").ok());
  EXPECT_THAT(python->runs.back().run.env, ElementsAre(Pair("A", "sandbox"), Pair("B", "context"),
                                                       Pair("C", "sandbox"), Pair("D", "context")))
      << "the run before changed nothing for others";
}

TEST_F(SandboxRunsTest, AVariableThatNoGuestCanHaveIsRefused) {
  using namespace std::string_literals;
  const auto refused = [&](const std::string& key, const std::string& value) {
    const auto set = sandbox().set_env({{key, value}});
    const auto made = sandbox().create_context({.binding = "PYTHON", .env = {{key, value}}});
    return !set.ok() && !made.ok() && set.error().code == ErrorCode::kInvalidArgument &&
           set.error().message == made.error().message;
  };
  EXPECT_TRUE(refused("a-b", "x"));
  EXPECT_TRUE(refused("", "x"));
  EXPECT_TRUE(refused("A", "a\0b"s));
  EXPECT_TRUE(refused("A", "\xff"));
  EXPECT_EQ(sandbox().create_context({.binding = "PYTHON", .id = "\xff"}).error().code,
            ErrorCode::kInvalidArgument);
  restart();
  EXPECT_TRUE(sandbox().info().ok()) << "nothing was stored that cannot be read";
}

TEST_F(SandboxRunsTest, ABindingWithoutContextsGetsAllOfTheRun) {
  const auto input = text_input("in");
  ASSERT_TRUE(start({.code = "1",
                     .file_name = "main.rb",
                     .args = {"main.rb", "-x"},
                     .input = input,
                     .cwd = "/workspace/d",
                     .limits = {.wall_max = std::chrono::seconds(3), .memory_bytes_max = 1 << 20},
                     .on_error = AfterError::kRollback},
                    "RUBY")
                  .get()
                  .ok());
  const sw::Run& run = ruby->runs_once.back();
  EXPECT_EQ(run.file_name, "main.rb");
  EXPECT_THAT(run.args, ElementsAre("main.rb", "-x"));
  EXPECT_EQ(run.input, input);
  EXPECT_EQ(run.cwd, "/workspace/d");
  EXPECT_EQ(run.limits.wall_max, std::chrono::seconds(3));
  EXPECT_EQ(run.limits.memory_bytes_max, 1u << 20);
  EXPECT_EQ(run.on_error, AfterError::kRollback);
}

TEST_F(SandboxRunsTest, ARunInAContextGetsAllOfTheRun) {
  make("a");
  const auto input = text_input("in");
  ASSERT_TRUE(start({.code = "1",
                     .context = "a",
                     .file_name = "main.py",
                     .args = {"main.py", "-x"},
                     .input = input,
                     .limits = {.wall_max = std::chrono::seconds(3)}})
                  .get()
                  .ok());
  const sw::Run& run = python->runs.back().run;
  EXPECT_EQ(run.file_name, "main.py");
  EXPECT_THAT(run.args, ElementsAre("main.py", "-x"));
  EXPECT_EQ(run.input, input);
  EXPECT_EQ(run.limits.wall_max, std::chrono::seconds(3));
}

TEST_F(SandboxRunsTest, ARunKnowsTheWorkspaceAsHomeIfItOrTheSandboxSaysSo) {
  make("a");
  for (const bool of_the_sandbox : {false, true}) {
    parts.options.home = of_the_sandbox;
    for (const bool of_the_run : {false, true}) {
      ASSERT_TRUE(start({.code = "1", .context = "a", .home = of_the_run}).get().ok());
      EXPECT_EQ(python->runs.back().run.home, of_the_sandbox || of_the_run);
      ASSERT_TRUE(start({.code = "1", .home = of_the_run}, "RUBY").get().ok());
      EXPECT_EQ(ruby->runs_once.back().home, of_the_sandbox || of_the_run);
    }
  }
}

TEST_F(SandboxRunsTest, WhatARunPrintsGoesToItsOwnEvents) {
  make("a");
  RunOutput output;
  ASSERT_TRUE(sandbox().run({.code = "1", .context = "a"}, "", output).ok());
  EXPECT_EQ(output.out, "ran\n");
}

TEST_F(SandboxRunsTest, WhoeverHearsOfARunsEndMayStartAnother) {
  make("a");
  std::promise<Result<Finished>> second;
  RunOutput output;
  sandbox().start({.code = "1", .context = "a"}, "", output, [&](const Result<Finished>&) {
    sandbox().start({.code = "2", .context = "a"}, "", output,
                    [&](Result<Finished> done) { second.set_value(std::move(done)); });
  });
  EXPECT_EQ(second.get_future().get()->outcome.context->executions, 2u);
}

// --- all at once

TEST_F(SandboxRunsTest, WhateverHappensAtOnceWhatIsStoredIsWhatThereIs) {
  constexpr int kThreads = 4;
  constexpr int kSteps = 40;
  std::vector<std::future<void>> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.push_back(std::async(std::launch::async, [this, thread] {
      const std::string id = fmt::format("c{}", thread);
      const std::string other = fmt::format("c{}", (thread + 1) % kThreads);
      RunOutput printed;
      for (int step = 0; step < kSteps; ++step) {
        (void)sandbox().create_context({.binding = "PYTHON", .id = id});
        (void)run(id, fmt::format("write {} {}\nwrite shared {}", id, step, thread));
        (void)run(other, "folder d\nwrite d/x 1\nremove shared");
        (void)sandbox().interrupt(other);
        (void)read("shared");
        (void)sandbox().set_env({{fmt::format("V{}", thread), std::to_string(step)}});
        if (step % 8 == thread) (void)sandbox().delete_context(other, printed);
        if (step % 16 == 15 && thread == 0) (void)sandbox().destroy(printed);
        (void)sandbox().info();
      }
    }));
  }
  for (auto& thread : threads) thread.get();
  const auto state = [&] {
    return std::tuple(read("shared"), read("d/x"), sandbox().info()->record.env, context_ids());
  };
  const auto before = state();
  restart();
  EXPECT_EQ(state(), before);
  EXPECT_THAT(python->interpreters, AnyOf(IsEmpty(), SizeIs(1)))
      << "a destroyed sandbox left something behind";
}

}  // namespace
}  // namespace sw::sandbox
