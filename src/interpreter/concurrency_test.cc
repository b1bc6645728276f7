// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What goes on beside a run of an Interpreter, and what waits for it.

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "interpreter/interpreter_fixture.h"

namespace sw::interpreter {
namespace {

/// A run that waits in a context until it is told to end.
class BusyContext {
 public:
  BusyContext(Interpreter& interpreter, Workspace& sandbox, const std::string& id) {
    protocol::ExecuteArgs args;
    args.run.context = id;
    args.run.code = R"({"op":"inc","then":"wait"})";
    args.run.cancel = stop_.get_token();
    args.run.files = sandbox.for_run();
    const int waiting = FakeSession::waiting();
    run_ = std::async(std::launch::async, [&interpreter, args = std::move(args)] {
      RunOutput printed;
      return interpreter.execute(args, printed);
    });
    while (FakeSession::waiting() == waiting) std::this_thread::yield();
  }

  Result<ExecuteResponse> end() {
    ended_ = true;
    stop_.request_stop();
    return run_.get();
  }
  /// Does something that has to wait for the run.
  template <class Operation>
  auto after_it(Operation operation) {
    std::promise<void> begun;
    auto waits = std::async(std::launch::async, [&] {
      begun.set_value();
      auto result = operation();
      EXPECT_TRUE(ended_) << "it did not wait";
      return result;
    });
    begun.get_future().wait();
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    EXPECT_TRUE(end().ok());
    return waits.get();
  }

 private:
  std::stop_source stop_;
  std::atomic<bool> ended_ = false;
  std::future<Result<ExecuteResponse>> run_;
};

TEST_F(InterpreterTest, ContextsRunSideBySide) {
  EXPECT_EQ(create("d").status, 201);
  BusyContext busy(*interpreter_, sandbox_, "c");
  EXPECT_EQ(value(run(kInc, "d")), "1");
  EXPECT_EQ(value(run(kInc, "d")), "2");
  EXPECT_EQ(busy.end()->outcome.ending, Ending::kCancelled);
  EXPECT_EQ(value(run(kInc)), "2");
}

TEST_F(InterpreterTest, RunsOfManyContextsEachTakeTurns) {
  constexpr int kThreads = 8;
  constexpr int kRuns = 50;
  EXPECT_EQ(create("d").status, 201);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < kRuns; ++k) {
        protocol::ExecuteArgs args;
        args.run.context = i % 2 == 0 ? "c" : "d";
        args.run.code = kInc;
        RunOutput printed;
        EXPECT_TRUE(interpreter_->execute(args, printed).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const char* id : {"c", "d"}) {
    const auto last = run(kRead, id);
    EXPECT_EQ(value(last), std::to_string(kThreads / 2 * kRuns));
    EXPECT_EQ(last.outcome.context->executions, kThreads / 2 * kRuns + 1u);
  }
}

TEST_F(InterpreterTest, QuestionsAndNewContextsDoNotWaitForARun) {
  run(kInc);
  BusyContext busy(*interpreter_, sandbox_, "c");
  const auto info = interpreter_->context("c").value();
  EXPECT_EQ(info.executions, 1u) << "the run that goes on is not counted yet";
  EXPECT_FALSE(info.resident);
  EXPECT_TRUE(interpreter_->create("d", "/workspace").ok());
  EXPECT_EQ(interpreter_->contexts()->size(), 2u);
  EXPECT_TRUE(interpreter_->checkpoints("c")->empty());
  EXPECT_TRUE(interpreter_->remove("d").ok());
  EXPECT_TRUE(busy.end().ok());
}

TEST_F(InterpreterTest, QuestionsDoNotWaitForAnInstanceThatBootsOrIsRestored) {
  for (const auto& state : {ContextState::kFresh, ContextState::kRestored}) {
    restart();
    bool asked = false;
    engine_->during_boot = [&] {
      asked = std::async(std::launch::async, [&] { return interpreter_->contexts().ok(); }).get();
    };
    EXPECT_EQ(run(kInc).outcome.context->state, state);
    EXPECT_TRUE(asked);
  }
}

TEST_F(InterpreterTest, UndoWaitsForTheRunThatItTakesBack) {
  run(kInc);
  BusyContext busy(*interpreter_, sandbox_, "c");
  EXPECT_TRUE(busy.after_it([&] { return interpreter_->undo("c", 1); }).ok());
  EXPECT_EQ(value(run(kRead)), "1");
}

TEST_F(InterpreterTest, AForkHasWhatTheRunLeft) {
  run(kInc);
  BusyContext busy(*interpreter_, sandbox_, "c");
  EXPECT_EQ(busy.after_it([&] { return interpreter_->fork("c", "f", {}); })->executions, 2u);
  EXPECT_EQ(value(run(kRead, "f")), "2");
}

TEST_F(InterpreterTest, ACheckpointHasWhatTheRunLeft) {
  run(kInc);
  BusyContext busy(*interpreter_, sandbox_, "c");
  EXPECT_TRUE(busy.after_it([&] { return interpreter_->add_checkpoint("c", "two"); }).ok());
  run(kInc);
  EXPECT_TRUE(interpreter_->restore("c", "two").ok());
  EXPECT_EQ(value(run(kRead)), "2");
}

TEST_F(InterpreterTest, ABusyContextIsRemovedAfterItsRun) {
  BusyContext busy(*interpreter_, sandbox_, "c");
  EXPECT_TRUE(busy.after_it([&] { return interpreter_->remove("c"); }).ok());
  EXPECT_EQ(refusal(ask(kRead)).code, ErrorCode::kContextNotFound);
  EXPECT_EQ(engine_->alive, 0);
}

TEST_F(InterpreterTest, DestroyingWaitsForAllRuns) {
  EXPECT_EQ(create("d").status, 201);
  BusyContext first(*interpreter_, sandbox_, "c");
  BusyContext second(*interpreter_, sandbox_, "d");
  EXPECT_TRUE(first
                  .after_it([&] {
                    EXPECT_TRUE(second.after_it([&] { return interpreter_->destroy(); }).ok());
                    return Result<void>();
                  })
                  .ok());
  EXPECT_TRUE(interpreter_->contexts()->empty());
  EXPECT_EQ(engine_->alive, 0);
  EXPECT_EQ(create("c").status, 201);
  EXPECT_EQ(value(run(kInc)), "1");
}

TEST_F(InterpreterTest, TheAlarmLeavesARunThatGoesOnAlone) {
  EXPECT_EQ(request("DELETE", "/").status, 200);
  options_.idle_ttl = std::chrono::milliseconds(1000);
  restart();
  EXPECT_EQ(create("c").status, 201);
  BusyContext busy(*interpreter_, sandbox_, "c");
  clock_.advance(std::chrono::milliseconds(5000));
  EXPECT_TRUE(interpreter_->on_alarm({}).ok());
  EXPECT_GT(storage_->alarms_until(object::Time::max(), 1)->at(0).time, clock_.now())
      << "it goes off again, should the run come to nothing";
  EXPECT_TRUE(busy.end().ok());
  EXPECT_EQ(value(run(kRead)), "1");
}

}  // namespace
}  // namespace sw::interpreter
