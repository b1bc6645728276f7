// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What happens beside a run, and what becomes of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/thread_safety.h"
#include "sandbox/fake_worker.h"
#include "sandbox/names.h"
#include "sandbox/sandbox.h"
#include "storage/memory/memory_storage.h"

namespace sw::sandbox {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr object::Time kStart{std::chrono::milliseconds(1'700'000'000'000)};
const Error kDiskFull{ErrorCode::kUnavailable, "disk full", 0};

/// A run that was started.
struct Started {
  RunOutput output;
  std::promise<Result<Finished>> promise;
};
using Future = std::future<Result<Finished>>;

ErrorCode code_of(Future& run) {
  const auto finished = run.get();
  EXPECT_FALSE(finished.ok());
  return finished.ok() ? ErrorCode{} : finished.error().code;
}

struct SandboxRunsTest : ::testing::Test {
  std::shared_ptr<FakeWorker> python = std::make_shared<FakeWorker>("python");
  std::shared_ptr<FakeWorker> ruby = std::make_shared<FakeWorker>("ruby", false);
  RunOutput printed_at_end;  // by exit handlers
  Gate gate;                 // runs whose code begins with "hold", by their first line
  Gate calls;                // what `hold_calls` says
  std::string hold_calls = "none";
  object::ManualClock clock{kStart};
  executor::GuestPool guests{{.slots = 4, .stack_bytes = std::size_t{1} << 20}};
  SandboxParts parts{
      .bindings = {{"PYTHON", python}, {"RUBY", ruby}}, .clock = clock, .guests = guests};
  storage::MemoryDisk disk{storage::Bodies::kTwice};
  std::unique_ptr<storage::Storage> storage = storage::open_memory_storage(disk);
  const storage::ObjectName name = object_name("demo").value();
  std::unique_ptr<storage::ObjectStorage> object = storage->open(name, Sandbox::schema()).value();
  std::optional<Sandbox> sandbox_;
  Mutex opening_;  // held while it is made

  SandboxRunsTest() {
    const auto hold = [this](const sw::Run& run) {
      const std::string first = run.code.substr(0, run.code.find('\n'));
      if (first.starts_with("hold")) gate.pass(first, run.cancel);
      if (first.starts_with("stubborn")) gate.pass(first);
    };
    python->before_run = hold;
    ruby->before_run = hold;
    python->before_call = [this](const std::string& call) {
      if (call.starts_with(hold_calls)) calls.pass(hold_calls);
    };
  }
  ~SandboxRunsTest() override {
    gate.open();
    calls.open();
    guests.shut_down();
  }

  Sandbox& sandbox() {
    const MutexLock lock(opening_);
    if (!sandbox_) sandbox_.emplace(*object, parts);
    return *sandbox_;
  }
  void restart() {
    sandbox_.reset();
    object = storage->open(name, Sandbox::schema()).value();
  }
  void make(const std::string& id) {
    ASSERT_TRUE(sandbox().create_context({.binding = "PYTHON", .id = id}).ok());
  }
  Future start(sw::Run run, const std::string& binding = "") {
    const auto started = std::make_shared<Started>();
    sandbox().start(std::move(run), binding, started->output, [started](Result<Finished> finished) {
      started->promise.set_value(std::move(finished));
    });
    return started->promise.get_future();
  }
  Future start_in(const std::string& context, const std::string& code) {
    return start({.code = code, .context = context});
  }
  /// A run that is held up when this returns.
  Future hold(const std::string& context, const std::string& first, const std::string& code = "") {
    Future run = start_in(context, first + "\n" + code);
    gate.wait_for(first);
    return run;
  }
  Result<Finished> run(const std::string& context, const std::string& code) {
    return start_in(context, code).get();
  }
  void write(const char* path, const char* text) {
    ASSERT_TRUE(sandbox()
                    .with_files(FileUse::kChange, "file.write", path,
                                [&](Workspace& files, std::uint64_t now) {
                                  return files.write(path, text, FileEncoding::kUtf8, now);
                                })
                    .ok());
  }
  std::string read(const char* path) {
    const auto text = sandbox().with_files(FileUse::kLook, "file.read", path,
                                           [&](const Workspace& files, std::uint64_t) {
                                             return files.read(path, FileEncoding::kUtf8);
                                           });
    return text.ok() ? text->content : std::string(code_name(text.error().code));
  }
  std::vector<std::string> context_ids() {
    std::vector<std::string> ids;
    const auto records = sandbox().contexts();
    if (!records.ok()) return {records.error().message};
    for (const ContextRecord& record : *records) ids.push_back(record.id);
    return ids;
  }
  std::string seen_by(const std::string& context, const char* path) {
    const auto text =
        python->interpreters.begin()->second.mirrors.at(context).read(path, FileEncoding::kUtf8);
    return text.ok() ? text->content : std::string(code_name(text.error().code));
  }
};

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

// --- ending runs

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
  EXPECT_EQ(python->calls.back(), "end a");
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
  const auto results = [&](const std::vector<std::function<Result<ContextRecord>()>>& makers) {
    std::vector<std::future<Result<ContextRecord>>> made;
    for (const auto& maker : makers) made.push_back(std::async(std::launch::async, maker));
    std::size_t done = 0;
    for (auto& one : made) done += one.get().ok() ? 1U : 0U;
    return done;
  };
  EXPECT_EQ(results({[&] { return sandbox().fork("a", "twin"); },
                     [&] { return sandbox().fork("b", "twin"); },
                     [&] { return sandbox().create_context({.binding = "PYTHON", .id = "twin"}); },
                     [&] { return sandbox().fork("a", "twin"); }}),
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

// --- storage that fails

TEST_F(SandboxRunsTest, ARunThatCannotBeStoredHasNotHappened) {
  make("a");
  ASSERT_TRUE(run("a", "write f 1").ok());
  Future held = hold("a", "hold a", "write f 2\nwrite g 2");
  disk.fail_commits(kDiskFull);
  EXPECT_FALSE(sandbox().set_env({{"A", "1"}}).ok());
  gate.open();
  EXPECT_EQ(code_of(held), ErrorCode::kUnavailable);
  disk.fail_commits(std::nullopt);
  EXPECT_EQ(read("f"), "1");
  EXPECT_EQ(read("g"), "file not found");
  EXPECT_EQ(sandbox().context("a")->executions, 1u);
  EXPECT_THAT(sandbox().info()->record.env, IsEmpty());
  ASSERT_TRUE(run("a", "3").ok());
  EXPECT_EQ(python->runs.back().executions_known, 1u) << "so that the lost run is taken back";
}

TEST_F(SandboxRunsTest, AFailureOfTheStorageInTheMiddleOfARunIsNoneOfTheRuns) {
  make("a");
  write("f", "0");
  Future held = hold("a", "hold a", "write g 2");
  disk.fail_commits(kDiskFull);
  EXPECT_FALSE(sandbox().set_env({{"A", "1"}}).ok());
  disk.fail_commits(std::nullopt);
  write("h", "3");
  gate.open();
  EXPECT_EQ(held.get()->outcome.context->executions, 1u);
  restart();
  EXPECT_EQ(read("f") + read("g") + read("h"), "023");
}

TEST_F(SandboxRunsTest, WhatAFailedChangeOfTheFilesDidIsStoredOrNotThere) {
  parts.options.files.entries_max = 2;
  const auto made = sandbox().with_files(FileUse::kChange, "directory.create", "a/b/c",
                                         [](Workspace& files, std::uint64_t now) {
                                           return files.make_directory("a/b/c", Depth::kAll, now);
                                         });
  EXPECT_FALSE(made.ok());
  const auto count = [&] { return sandbox().info()->files; };
  const std::uint64_t before = count();
  restart();
  EXPECT_EQ(count(), before);
}

// --- Interpreters that answer nonsense

TEST_F(SandboxRunsTest, AnAnswerThatSaysNothingOfTheContextIsRefused) {
  make("a");
  python->after_run = [](protocol::ExecuteResponse& response) { response.outcome.context.reset(); };
  const auto finished = run("a", "write f 1");
  ASSERT_FALSE(finished.ok());
  EXPECT_EQ(finished.error().code, ErrorCode::kBadReply);
  EXPECT_EQ(read("f"), "file not found");
  EXPECT_EQ(sandbox().context("a")->executions, 0u);
}

TEST_F(SandboxRunsTest, AnAnswerFromOutsideOfTheWorkspaceIsRefused) {
  make("a");
  for (const char* cwd : {"/etc", "", "/workspace/../x"}) {
    python->after_run = [&](protocol::ExecuteResponse& response) { response.outcome.cwd = cwd; };
    const auto finished = run("a", "write f 1");
    ASSERT_FALSE(finished.ok()) << cwd;
    EXPECT_EQ(finished.error().code, ErrorCode::kBadReply) << cwd;
  }
  EXPECT_EQ(sandbox().context("a")->cwd, "/workspace");
  EXPECT_EQ(read("f"), "file not found");
}

TEST_F(SandboxRunsTest, FilesThatCannotBeChangeNothing) {
  make("a");
  write("f", "0");
  const auto spoiled = [&](std::function<void(WorkspaceDiff&)> spoil) {
    python->after_run = [spoil = std::move(spoil)](protocol::ExecuteResponse& response) {
      spoil(*response.outcome.files);
    };
    const auto finished = run("a", "write f 1");
    return finished.ok() ? std::string("taken") : std::string(code_name(finished.error().code));
  };
  for (const char* path : {"/etc/passwd", "/workspace/../x", "f", ""}) {
    EXPECT_NE(
        spoiled([&](WorkspaceDiff& diff) { diff.files.push_back({.path = path, .data = {}}); }),
        "taken")
        << path;
    EXPECT_NE(spoiled([&](WorkspaceDiff& diff) { diff.links.emplace(path, "f"); }), "taken")
        << path;
  }
  python->after_run = nullptr;
  EXPECT_EQ(read("f"), "0");
  restart();
  EXPECT_EQ(read("f"), "0");
}

TEST_F(SandboxRunsTest, AContextIsCountedHereWhateverItsInterpreterSays) {
  make("a");
  python->after_run = [](protocol::ExecuteResponse& response) {
    response.outcome.context->id = "other";
    response.outcome.context->executions = 77;
  };
  const auto finished = run("a", "1");
  EXPECT_EQ(finished->outcome.context->id, "a");
  EXPECT_EQ(finished->outcome.context->executions, 1u);
  ASSERT_TRUE(run("a", "1").ok());
  EXPECT_EQ(python->runs.back().executions_known, 77u) << "it is told its own count";
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
