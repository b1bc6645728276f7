// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "sandbox_workers/base/files.h"

namespace sw {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Tells when something has been printed.
class Printed final : public RunEvents {
 public:
  wasi::Errno write(wasi::Stream, BytesView bytes) override {
    text += as_text(bytes);
    if (!told_.exchange(true)) promise_.set_value();
    return wasi::Errno::kSuccess;
  }
  void wait() { future_.wait(); }
  std::string text;

 private:
  std::atomic<bool> told_ = false;
  std::promise<void> promise_;
  std::future<void> future_ = promise_.get_future();
};

constexpr char kEndless[] = "console.log('begun'); for (;;) {}";

TEST(Host, RunsCodeInAFreshInterpreter) {
  const Host host = Host::open().value();
  const auto outcome =
      host.run({.language = "javascript", .code = "console.log(1); 6 * 7"}).value();
  EXPECT_EQ(outcome.value->text, "42");
  EXPECT_EQ(outcome.out, "1\n");
  EXPECT_FALSE(outcome.context);
}

TEST(Host, RefusesWhatCannotBeRunAndSaysWhy) {
  const Host host = Host::open().value();
  EXPECT_THAT(host.run({.language = "cobol", .code = "1"}).error().message,
              HasSubstr("unknown language 'cobol'"));
  EXPECT_EQ(host.run({.language = "js", .code = " "}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(host.sandbox("no spaces").run({.language = "js", .code = "1"}).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(host.sandbox("a").context("none").run({.code = "1"}).error().code,
            ErrorCode::kContextNotFound);
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

TEST(Host, ExitHandlersRunWhenAContextIsRemovedOrItsSandboxDestroyed) {
  const Host host = Host::open().value();
  const Sandbox sandbox = host.sandbox("a");
  const std::string code =
      "process.on('exit', () => { console.log('bye'); fs.writeFileSync('left', '1') })";
  ASSERT_TRUE(sandbox.run({.language = "js", .code = code, .context = "one"}).ok());
  ASSERT_TRUE(sandbox.run({.language = "js", .code = code, .context = "two"}).ok());
  RunOutput first;
  ASSERT_TRUE(sandbox.context("one").remove(first).ok());
  EXPECT_EQ(first.out, "bye\n");
  EXPECT_EQ(as_text(sandbox.files().read("left").value()), "1");
  EXPECT_EQ(sandbox.contexts()->size(), 1U);
  RunOutput second;
  ASSERT_TRUE(sandbox.destroy(second).ok());
  EXPECT_EQ(second.out, "bye\n");
}

TEST(Host, RefusesOptionsThatCannotWork) {
  const auto message = [](HostOptions options) { return Host::open(options).error().message; };
  EXPECT_THAT(message({.guests_max = 0}), HasSubstr("guests_max must be at least 1"));
  EXPECT_THAT(message({.queue_max = 0}), HasSubstr("queue_max must be at least 1"));
  EXPECT_THAT(message({.engines = {nullptr}}), HasSubstr("null engine"));
}

TEST(Host, RefusesAContextOutsideOfASandbox) {
  const Host host = Host::open().value();
  EXPECT_THAT(host.run({.language = "js", .code = "1", .context = "a"}).error().message,
              HasSubstr("Run::context must be empty"));
  EXPECT_THAT(host.run({.code = "1"}).error().message, HasSubstr("no language is given"));
}

TEST(Host, FilesOfARunOutsideOfASandboxGoBackIfItIsToldSo) {
  const Host host = Host::open().value();
  for (const auto on_error : {AfterError::kKeep, AfterError::kRollback}) {
    sw::Run run{.language = "js", .code = "fs.writeFileSync('a', '1'); null.x"};
    run.on_error = on_error;
    run.files = std::make_shared<const RunFiles>();
    EXPECT_EQ(host.run(run)->files.has_value(), on_error == AfterError::kKeep);
  }
}

TEST(Host, RefusesFilesForARunInASandbox) {
  const Host host = Host::open().value();
  sw::Run run{.language = "js", .code = "1"};
  run.files = std::make_shared<const RunFiles>();
  EXPECT_EQ(host.sandbox("a").run(run).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(host.run({.language = "js", .ends_context = true}).error().code,
            ErrorCode::kInvalidArgument);
}

TEST(Host, AnAsynchronousRunTellsItsEventsAndItsEnd) {
  const Host host = Host::open().value();
  Printed printed;
  std::promise<std::string> value;
  RunHandle run = host.sandbox("a").start(
      {.language = "js", .code = "console.log('hi'); 7"}, printed,
      [&](const Result<Outcome>& outcome) { value.set_value(outcome->value->text); });
  EXPECT_EQ(value.get_future().get(), "7");
  EXPECT_EQ(run.wait()->value->text, "7");
  EXPECT_EQ(printed.text, "hi\n");
}

TEST(Host, ARunIsInterruptedFromAnotherThreadAndItsContextKeepsItsState) {
  const Host host = Host::open().value();
  const Context context = host.sandbox("a").context("main");
  ASSERT_TRUE(context.run({.language = "js", .code = "var x = 1"}).ok());
  Printed printed;
  RunHandle run = context.start({.code = kEndless}, printed);
  printed.wait();
  run.interrupt();
  EXPECT_EQ(run.wait()->ending, Ending::kCancelled);
  EXPECT_EQ(context.run({.code = "x"})->value->text, "1");
}

TEST(Host, AStopTokenEndsARunTooAndSoDoesItsContext) {
  const Host host = Host::open().value();
  const Context context = host.sandbox("a").context("main");
  std::stop_source stop;
  Printed first;
  sw::Run run{.language = "js", .code = kEndless};
  run.cancel = stop.get_token();
  RunHandle handle = context.start(run, first);
  first.wait();
  stop.request_stop();
  EXPECT_EQ(handle.wait()->ending, Ending::kCancelled);
  Printed second;
  handle = context.start({.code = kEndless}, second);
  second.wait();
  ASSERT_TRUE(context.interrupt().ok());
  EXPECT_EQ(handle.wait()->ending, Ending::kCancelled);
}

TEST(Host, WhatIsAskedOfASandboxNeverWaitsForItsRun) {
  const Host host = Host::open().value();
  const Sandbox sandbox = host.sandbox("a");
  ASSERT_TRUE(sandbox.files().write("f", "text").ok());
  Printed printed;
  RunHandle run = sandbox.start({.language = "js", .code = kEndless}, printed);
  printed.wait();
  EXPECT_EQ(sandbox.files().read_text("f").value(), "text");
  EXPECT_EQ(sandbox.info()->contexts.size(), 1U);
  EXPECT_TRUE(sandbox.create_context({.language = "js", .id = "other"}).ok());
  EXPECT_EQ(sandbox.context("other").run({.code = "1"})->value->text, "1");
  run.interrupt();
  EXPECT_TRUE(run.wait().ok());
}

TEST(Host, AContextIsForkedUndoneAndTakenBackToACheckpoint) {
  const Host host = Host::open().value();
  const Context main = host.sandbox("a").context("main");
  ASSERT_TRUE(main.run({.language = "js", .code = "var x = 1"}).ok());
  ASSERT_TRUE(main.checkpoint("one").ok());
  ASSERT_TRUE(main.run({.code = "x = 2"}).ok());
  const Context branch = main.fork("branch").value().context;
  ASSERT_TRUE(main.undo().ok());
  EXPECT_EQ(main.run({.code = "x"})->value->text, "1");
  EXPECT_EQ(branch.run({.code = "x"})->value->text, "2");
  EXPECT_EQ(branch.checkpoints()->size(), 0U);
  ASSERT_TRUE(main.run({.code = "x = 3"}).ok());
  ASSERT_TRUE(main.restore("one").ok());
  EXPECT_EQ(main.run({.code = "x"})->value->text, "1");
  EXPECT_EQ(main.checkpoints()->front().name, "one");
  ASSERT_TRUE(main.remove_checkpoint("one").ok());
  ASSERT_TRUE(main.restore(2).ok());
  EXPECT_EQ(main.run({.code = "x"})->value->text, "2");
  const auto history = main.history().value();
  ASSERT_EQ(history.size(), 6U);
  EXPECT_EQ(history[0].code, "var x = 1");
  EXPECT_EQ(history[1].step, 2U);
  EXPECT_TRUE(history[5].current);
  EXPECT_EQ(main.fork("third", 4).value().context.run({.code = "x"})->value->text, "3");
  EXPECT_EQ(main.restore(77).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(branch.remove().ok());
  EXPECT_EQ(branch.info().error().code, ErrorCode::kContextNotFound);
}

TEST(Host, EveryRunOfItsSandboxesKnowsTheWorkspaceAsHomeIfItIsToldTo) {
  const std::string where = "console.log(process.cwd(), require('os').homedir())";
  for (const bool home : {true, false}) {
    const Host host = Host::open({.sandboxes = {.home = home}}).value();
    const Sandbox sandbox = host.sandbox("a");
    ASSERT_TRUE(sandbox.files().make_folder("d").ok());
    EXPECT_EQ(sandbox.run({.language = "js", .code = where})->out,
              home ? "/home/user /home/user\n" : "/workspace /workspace\n");
    EXPECT_EQ(sandbox.run({.language = "js", .code = "process.chdir('d')"})->cwd, "/workspace/d");
    const Context context =
        sandbox.create_context({.language = "js", .cwd = "/workspace/d"}).value();
    EXPECT_EQ(context.run({.code = where, .env = {{"HOME", "/tmp"}}})->out,
              home ? "/home/user/d /tmp\n" : "/workspace/d /tmp\n");
    EXPECT_EQ(host.run({.language = "js", .code = where, .home = !home})->out,
              home ? "/workspace /workspace\n" : "/home/user /home/user\n");
  }
}

TEST(Host, SandboxesOfADataFolderOutliveTheHost) {
  const auto folder =
      TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-host-").value();
  const HostOptions options{.data_folder = folder.path() / "data"};
  {
    const Host host = Host::open(options).value();
    ASSERT_TRUE(host.sandbox("b").run({.language = "js", .code = "var x = 5"}).ok());
    ASSERT_TRUE(host.sandbox("a").set_env({{"NAME", "world"}}).ok());
    const auto second = Host::open(options);
    EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
    EXPECT_TRUE(is_in_use(second.error()));
    EXPECT_EQ(second.error().context.at("usedBy"), std::to_string(::getpid()));
  }
  const Host host = Host::open(options).value();
  EXPECT_THAT(host.sandboxes().value(), ElementsAre("a", "b"));
  EXPECT_EQ(host.sandbox("b").run({.language = "js", .code = "x"})->value->text, "5");
  EXPECT_EQ(host.sandbox("a").run({.language = "js", .code = "process.env.NAME"})->value->text,
            "'world'");
  ASSERT_TRUE(host.sandbox("a").destroy().ok());
  EXPECT_FALSE(host.has_sandbox("a").value());
  EXPECT_TRUE(host.has_sandbox("b").value());
}

TEST(Host, ADataFolderThatMustExistIsNotMade) {
  const auto folder =
      TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-host-").value();
  const auto host = Host::open({.data_folder = folder.path() / "none", .must_exist = true});
  EXPECT_EQ(host.error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "none"));
}

TEST(Host, ClosingTheHostStopsItsRuns) {
  Printed printed;
  std::optional<RunHandle> run;
  {
    const Host host = Host::open().value();
    sw::Run endless{.language = "js", .code = kEndless};
    endless.limits.wall_max = {};
    run = host.start(endless, printed);
    printed.wait();
  }
  EXPECT_EQ(run->wait()->ending, Ending::kCancelled);
}

TEST(Host, FiftyUsersAreServedOnTwoThreads) {
  const Host host = Host::open({.runs_at_once = 2}).value();
  std::vector<RunHandle> runs;
  RunOutput ignored;
  for (int user = 0; user < 50; ++user) {
    const Sandbox sandbox = host.sandbox("user-" + std::to_string(user));
    runs.push_back(sandbox.start(
        {.language = "js", .code = "var me = " + std::to_string(user) + "; me"}, ignored));
  }
  for (int user = 0; user < 50; ++user) {
    EXPECT_EQ(runs[static_cast<std::size_t>(user)].wait()->value->text, std::to_string(user));
  }
}

TEST(Host, SleepingGuestsDoNotKeepOthersFromRunning) {
  const Host host = Host::open({.runs_at_once = 1}).value();
  RunOutput ignored;
  sw::Run sleeper{.language = "js", .code = "await new Promise(done => setTimeout(done, 1e6))"};
  sleeper.limits.wall_max = {};
  std::vector<RunHandle> sleepers;
  for (int i = 0; i < 3; ++i) sleepers.push_back(host.start(sleeper, ignored));
  EXPECT_EQ(host.run({.language = "js", .code = "1"})->value->text, "1");
  for (RunHandle& run : sleepers) run.interrupt();
  for (RunHandle& run : sleepers) EXPECT_TRUE(run.wait().ok());
}

TEST(Host, TellsItsLanguages) {
  const Host host = Host::open().value();
  EXPECT_EQ(host.languages().size(), 4U);
  EXPECT_EQ(host.language("PY")->id, "python");
  EXPECT_EQ(guess_language("a.rb", "")->id, "ruby");
  EXPECT_TRUE(host.is_complete("javascript", "1 + 1"));
  EXPECT_FALSE(host.is_complete("javascript", "f(1,"));
}

}  // namespace
}  // namespace sw
