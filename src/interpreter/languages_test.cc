// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Contexts of every language behind a runtime Worker: the rules with real interpreters, and what a
// memory must still hold when another process has it.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <random>

#include "interpreter/test_programs.h"
#include "interpreter/test_worker.h"
#include "storage/memory/memory_storage.h"

namespace sw::interpreter {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using namespace std::string_literals;
using protocol::ExecuteResponse;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class LanguagesTest : public ::testing::TestWithParam<std::string> {
 protected:
  LanguagesTest() {
    restart();
    create("c");
  }

  /// As another process would find it.
  void restart(const ResidencyLimits& residency = {}) {
    worker_ = nullptr;
    worker_ =
        std::make_unique<TestWorker>(TestWorker::engine(GetParam()), *storage_, files_, residency);
  }
  void create(const std::string& id, const std::string& cwd = "/workspace") {
    worker_->create(id, cwd);
  }

  ExecuteResponse run(const std::string& code, const std::string& id = "c",
                      const RunLimits& limits = {.wall_max = 600s}) {
    return worker_->run(id, code, limits);
  }
  /// Its limit is CPU time: a busy machine may leave it none for long, and it has to get into its
  /// loop.
  ExecuteResponse run_for(const std::string& code, std::chrono::milliseconds cpu_max,
                          std::chrono::milliseconds grace) {
    RunLimits limits;
    limits.wall_max = 600s;
    limits.cpu_max = cpu_max;
    limits.memory_bytes_max = std::uint64_t{400} << 20;
    limits.grace = grace;
    return run(code, "c", limits);
  }
  std::string value(const std::string& code, const std::string& id = "c") {
    const ExecuteResponse response = run(code, id);
    if (response.outcome.error)
      return response.outcome.error->name + ": " + response.outcome.error->message;
    return response.outcome.value ? response.outcome.value->text : "";
  }
  std::string log() { return files_.read("log", FileEncoding::kUtf8)->content; }
  std::string printed(const std::string& code) {
    const ExecuteResponse response = run(code);
    return response.outcome.error ? response.outcome.error->message : worker_->printed.out;
  }

  const Programs& code_ = programs().at(GetParam());
  storage::MemoryDisk disk_{storage::Bodies::kTwice};
  std::unique_ptr<storage::Storage> storage_ = storage::open_memory_storage(disk_);
  Workspace files_{kWorkspaceLimits, 1};  // of the Sandbox: they outlive the process
  std::unique_ptr<TestWorker> worker_;
};

TEST_P(LanguagesTest, StateIsLiveThenRestored) {
  const auto first = run(code_.one);
  EXPECT_EQ(first.outcome.context->state, ContextState::kFresh);
  EXPECT_TRUE(first.outcome.context->snapshot_ms);
  EXPECT_EQ(run(code_.add).outcome.context->state, ContextState::kLive);
  restart();
  const auto restored = run(code_.add);
  EXPECT_EQ(restored.outcome.context->state, ContextState::kRestored);
  EXPECT_THAT(restored.outcome.context->note, IsEmpty());
  EXPECT_EQ(restored.outcome.value->text, "3");
  EXPECT_EQ(restored.outcome.context->executions, 3u);
  EXPECT_FALSE(restored.snapshot->stale);
}

TEST_P(LanguagesTest, ASmallStepWritesKilobytes) {
  run(code_.one);
  run(code_.add);
  const std::map<std::string, std::uint64_t> bytes_max = {
      {"javascript", 8'000}, {"python", 24'000}, {"perl", 16'000}, {"ruby", 24'000}};
  for (int i = 0; i < 5; ++i)
    EXPECT_LT(run(code_.add).outcome.context->snapshot_bytes_written, bytes_max.at(GetParam()));
}

TEST_P(LanguagesTest, AnErrorKeepsMemoryAndFilesUnlessAskedOtherwise) {
  struct Case {
    AfterError after_error;
    std::string log;
    const char* n;
  };
  using enum AfterError;
  for (const Case& expected :
       {Case{kKeep, "one\ntwo\nthree\n", "3"}, Case{kRollback, "one\nthree\n", "2"},
        Case{kFilesBack, "one\n\0\0\0\0three\n"s, "3"}}) {
    for (const bool goes_on_elsewhere : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {}", static_cast<int>(expected.after_error), goes_on_elsewhere));
      create("log");
      run(code_.one, "log");
      run(code_.log_one, "log");
      worker_->after_error = expected.after_error;
      EXPECT_TRUE(run(code_.log_two + code_.add_fail, "log").outcome.error);
      if (goes_on_elsewhere) restart();
      EXPECT_FALSE(run(code_.log_three, "log").outcome.error);
      EXPECT_EQ(log(), expected.log);
      EXPECT_EQ(value(code_.add, "log"), expected.n);
      ASSERT_EQ(worker_->request("DELETE", "/contexts/log").status, 200);
    }
  }
}

TEST_P(LanguagesTest, ASoftLimitIsSavedWithItsFiles) {
  run(code_.one);
  run(code_.log_one);
  const auto limited = run_for(code_.log_two + code_.loop, 50ms, 30s);
  EXPECT_EQ(limited.outcome.error->name, kExecutionLimitError);
  EXPECT_TRUE(limited.outcome.context->snapshot_ms);
  EXPECT_FALSE(limited.snapshot->stale);
  restart();
  const auto restored = run(code_.log_three);
  EXPECT_EQ(restored.outcome.context->state, ContextState::kRestored);
  EXPECT_THAT(restored.outcome.context->note, IsEmpty());
  EXPECT_EQ(log(), "one\ntwo\nthree\n");
  EXPECT_EQ(value(code_.add), "3");
  EXPECT_EQ(run_for(code_.loop, 50ms, 30s).outcome.context->state, ContextState::kLive);
  EXPECT_EQ(value(code_.add), "5");
}

TEST_P(LanguagesTest, AnInstanceThatEndedIsDroppedAndItsContextGoesOnFromWhatIsSaved) {
  run(code_.one);
  run(code_.log_one);
  const auto ended = run_for(code_.log_two + code_.ends, 500ms, 50ms);
  ASSERT_TRUE(ended.outcome.error);
  EXPECT_FALSE(ended.outcome.context->snapshot_ms);
  EXPECT_TRUE(ended.snapshot->stale);
  const auto restored = run(code_.log_three);
  EXPECT_EQ(restored.outcome.context->state, ContextState::kRestored);
  EXPECT_THAT(restored.outcome.context->note, HasSubstr("stale"));
  EXPECT_EQ(log(), "one\nthree\n");
  EXPECT_EQ(value(code_.add), "2");
}

TEST_P(LanguagesTest, ContextsAreApartAndForksGoTheirOwnWay) {
  run(code_.one);
  create("other");
  EXPECT_NE(value(code_.add, "other"), "2");
  EXPECT_EQ(worker_->post("c/fork", R"({"id":"fork"})").status, 201);
  EXPECT_EQ(value(code_.add, "fork"), "2");
  EXPECT_EQ(value(code_.add, "fork"), "3");
  EXPECT_EQ(value(code_.add), "2");
}

TEST_P(LanguagesTest, EveryCopyHasItsOwnRandomNumbers) {
  const std::string first = value(code_.random);
  create("fresh");
  const std::string fresh = value(code_.random, "fresh");
  ASSERT_EQ(worker_->post("c/fork", R"({"id":"a"})").status, 201);
  ASSERT_EQ(worker_->post("c/fork", R"({"id":"b"})").status, 201);
  const std::string a = value(code_.random, "a");
  const std::string b = value(code_.random, "b");
  restart();
  const std::string again = value(code_.random);
  EXPECT_EQ((std::set<std::string>{first, fresh, a, b, again}).size(), 5u)
      << first << ' ' << a << ' ' << b;
}

TEST_P(LanguagesTest, UndoAndCheckpointsGoBack) {
  run(code_.one);
  EXPECT_EQ(value(code_.add), "2");
  ASSERT_EQ(worker_->post("c/checkpoints", R"({"name":"two"})").status, 201);
  EXPECT_EQ(value(code_.add), "3");
  EXPECT_EQ(value(code_.add), "4");
  ASSERT_EQ(worker_->post("c/undo", "{}").status, 200);
  EXPECT_EQ(value(code_.add), "4");
  ASSERT_EQ(worker_->post("c/restore", R"({"name":"two"})").status, 200);
  EXPECT_EQ(value(code_.add), "3");
}

TEST_P(LanguagesTest, AContextThatEndsRunsItsExitHandlersAndFlushesItsFiles) {
  run(code_.at_end);
  EXPECT_EQ(worker_->printed.out, "");
  restart();
  EXPECT_FALSE(worker_->end("c").outcome.error);
  EXPECT_EQ(worker_->printed.out, "bye\n");
  EXPECT_EQ(files_.read("left", FileEncoding::kUtf8)->content, "left");
}

TEST_P(LanguagesTest, AnExitHandlerThatNeverEndsIsStoppedAndItsContextGoes) {
  const std::map<std::string, std::string> endless = {
      {"javascript", "process.on('exit', () => { for (;;); })"},
      {"perl", "END { 1 while 1 } undef"},
      {"python", "import atexit\ndef spin():\n  while True: pass\natexit.register(spin)"},
      {"ruby", "at_exit { loop { } }; nil"}};
  EXPECT_FALSE(run(endless.at(GetParam())).outcome.error);
  restart();
  const ExecuteResponse ended = worker_->end("c", {.wall_max = 1s});
  EXPECT_EQ(ended.outcome.ending, Ending::kTimeLimit);
  EXPECT_THAT(ended.outcome.error->message, HasSubstr("by exit handlers"));
}

TEST_P(LanguagesTest, AFileInTmpStaysOpenOverARestart) {
  run(code_.open_tmp);
  restart();
  EXPECT_EQ(printed(code_.write_tmp), "one two\n");
}

TEST_P(LanguagesTest, AFreshInstanceBeginsInTheContextsFolder) {
  ASSERT_TRUE(files_.make_directory("d", Depth::kOne, 1).ok());
  create("in_d", "/workspace/d");
  run(code_.cwd, "in_d");
  EXPECT_EQ(worker_->printed.out, "/workspace/d\n");
  create("in_nothing", "/workspace/nothing");
  run(code_.cwd, "in_nothing");
  EXPECT_EQ(worker_->printed.out, "/workspace\n");
}

TEST_P(LanguagesTest, EvictionCostsNothingButTime) {
  restart({.bytes_max = 1});
  run(code_.one);
  for (const char* expected : {"2", "3"}) {
    const auto result = run(code_.add);
    EXPECT_EQ(result.outcome.context->state, ContextState::kRestored);
    EXPECT_EQ(result.outcome.value->text, expected);
  }
}

TEST_P(LanguagesTest, ContextsThatComeAndGoSeeNothingOfEachOther) {
  for (int i = 0; i < 20; ++i) {
    create("probe");
    EXPECT_NE(value(code_.add, "probe"), "2") << "round " << i;
    run(code_.one, "probe");
    ASSERT_EQ(worker_->request("DELETE", "/contexts/probe").status, 200);
  }
}

// --- killed processes

/// Starts kill_child, reads what it prints for a random while, kills it, and returns the numbers
/// that were read.
std::vector<std::pair<std::uint64_t, std::uint64_t>> count_and_kill(const fs::path& folder,
                                                                    const std::string& language,
                                                                    std::mt19937& random) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::execl(SW_KILL_CHILD, SW_KILL_CHILD, folder.c_str(), language.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  FILE* lines = ::fdopen(ends[0], "r");
  std::vector<std::pair<std::uint64_t, std::uint64_t>> numbers;
  const auto wanted = 1 + random() % 8;
  unsigned long value = 0;
  unsigned long executions = 0;
  while (numbers.size() < wanted && std::fscanf(lines, "%lu %lu", &value, &executions) == 2) {
    numbers.emplace_back(value, executions);
  }
  // Somewhere within the next run, or the one after.
  const timespec pause{.tv_sec = 0, .tv_nsec = static_cast<long>(random() % 3'000'000)};
  ::nanosleep(&pause, nullptr);
  ::kill(child, SIGKILL);
  // What it printed before it died counts too.
  while (std::fscanf(lines, "%lu %lu", &value, &executions) == 2)
    numbers.emplace_back(value, executions);
  ::waitpid(child, nullptr, 0);
  std::fclose(lines);
  return numbers;
}

TEST_P(LanguagesTest, AKillAtAnyMomentLosesAtMostTheRunInFlight) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto folder = TemporaryDirectory::create(fs::temp_directory_path(), "sw-kill-").value();
  std::uint64_t last = 0;
  for (int kill = 0; kill < 200; ++kill) {
    const auto numbers = count_and_kill(folder.path() / "data", GetParam(), random);
    ASSERT_FALSE(numbers.empty()) << "after kill " << kill;
    // The run that was in flight at the last kill was either saved or not, as a whole.
    ASSERT_THAT(numbers.front().first, AnyOf(last + 1, last + 2)) << "after " << last;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      ASSERT_EQ(numbers[i].first, numbers.front().first + i);
      ASSERT_EQ(numbers[i].second, numbers[i].first) << "memory and row disagree";
    }
    last = numbers.back().first;
  }
}

INSTANTIATE_TEST_SUITE_P(Languages, LanguagesTest,
                         ::testing::Values("javascript", "perl", "python", "ruby"),
                         [](const auto& param_info) { return param_info.param; });

// --- what one language has and others have not

class PythonContext : public LanguagesTest {};

TEST_P(PythonContext, ClocksGoOnAfterARestore) {
  run("import time; t0 = time.time(); m0 = time.monotonic(); p0 = time.perf_counter()");
  restart();
  EXPECT_EQ(value("0 <= time.time() - t0 < 60, time.monotonic() >= m0, time.perf_counter() >= p0"),
            "(True, True, True)");
}

TEST_P(PythonContext, WhatWasBufferedIsWrittenOnceInEachCopy) {
  run("f = open('/workspace/log.txt', 'w'); f.write('one\\n')");
  restart();
  ASSERT_EQ(worker_->post("c/fork", R"({"id":"fork"})").status, 201);
  EXPECT_EQ(value("f.write('two\\n'); f.flush(); open('/workspace/log.txt').read()"),
            "'one\\ntwo\\n'");
  EXPECT_EQ(value("f.write('three\\n'); f.flush(); open('/workspace/log.txt').read()", "fork"),
            "'one\\nthree\\n'");
}

TEST_P(PythonContext, HoldsWhatNoPicklerCanSave) {
  run("import sqlite3, re, threading\n"
      "db = sqlite3.connect(':memory:'); gen = (i*i for i in range(5)); next(gen); lam = lambda v: "
      "v+1\n"
      "lock = threading.Lock(); pat = re.compile('a'); it = iter([1,2,3]); next(it)");
  restart();
  EXPECT_EQ(
      value(
          "next(gen), lam(1), lock.acquire(blocking=False), pat.match('a') is not None, next(it), "
          "db.execute('select 1').fetchone()"),
      "(1, 2, True, True, 2, (1,))");
}

TEST_P(PythonContext, ALargeMemoryComesBackAndCanBeLetGo) {
  run("big = bytearray(8 << 20); big[-1] = 7");
  for (int i = 0; i < 5; ++i) {
    create("other");
    run("x = bytearray(32 << 20)", "other");
    worker_->request("DELETE", "/contexts/other");
  }
  restart();
  EXPECT_EQ(value("len(big), big[-1], big[0], big.count(7)"), "(8388608, 7, 0, 1)");
  EXPECT_EQ(
      value(
          "more = bytearray(4 << 20); del big; again = bytearray(8 << 20); len(more) + len(again)"),
      "12582912");
}

TEST_P(PythonContext, ReplacedStreamsAndLogHandlersStayWhatTheyAre) {
  run("import logging, sys, io\n"
      "logging.basicConfig(format='%(levelname)s %(message)s'); log = logging.getLogger('app'); "
      "log.warning('one')\n"
      "old = sys.stdout; sys.stdout = io.StringIO(); print('hidden')");
  EXPECT_EQ(worker_->printed.err, "WARNING one\n");
  EXPECT_THAT(worker_->printed.out, IsEmpty());
  run("print('also hidden'); log.warning('two')");
  EXPECT_EQ(worker_->printed.err, "WARNING two\n");
  EXPECT_EQ(value("text = sys.stdout.getvalue(); sys.stdout = old; text"),
            "'hidden\\nalso hidden\\n'");
  restart();
  run("log.warning('three'); saved = sys.stdout.write; saved('direct\\n'); "
      "sys.__stdout__.write('dunder\\n')");
  EXPECT_EQ(worker_->printed.err, "WARNING three\n");
  EXPECT_EQ(worker_->printed.out, "direct\ndunder\n");
}

INSTANTIATE_TEST_SUITE_P(Languages, PythonContext, ::testing::Values("python"),
                         [](const auto& param_info) { return param_info.param; });

}  // namespace
}  // namespace sw::interpreter
