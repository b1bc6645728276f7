// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// A runtime Worker as its callers see it, with an engine without Wasm.

#include "interpreter/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <future>
#include <thread>

#include "interpreter/fake_engine.h"
#include "interpreter/worker_fixture.h"

namespace sw::interpreter {
namespace {

using protocol::Request;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

TEST_F(WorkerTest, SaysWhatItIs) {
  const auto info = fetch("GET", "/interpreter");
  EXPECT_EQ(info.status, 200);
  EXPECT_EQ(info.body, R"({"language":"fake","engine":"Fake 1","contexts":true,"protocol":1})");
  EXPECT_EQ(*protocol::find_header(info.headers, "cache-control"), "no-store");
  EXPECT_EQ(*protocol::find_header(fetch("POST", "/interpreter").headers, "allow"), "GET");
}

TEST_F(WorkerTest, ThereIsNothingElse) {
  const auto nothing = fetch("GET", "/else");
  EXPECT_EQ(nothing.status, 404);
  EXPECT_EQ(json(nothing).at("code"), "VALIDATION_FAILED");
  EXPECT_EQ(json(nothing).at("httpStatus"), 404);
}

TEST_F(WorkerTest, RunsCodeInAGuestOfItsOwn) {
  const auto response =
      fetch("POST", "/execute",
            R"({"code":"hello","envVars":{"A":"x","1B":"dropped","C":null},"stdin":"in"})");
  EXPECT_EQ(response.status, 200);
  const auto result = json(response);
  EXPECT_EQ(result.at("code"), "hello");
  EXPECT_EQ(result.at("language"), "fake");
  EXPECT_EQ(boost::json::serialize(result.at("logs").at("stdout")), R"(["hello","in"])");
  EXPECT_EQ(boost::json::serialize(result.at("results")), R"([{"text":"x"}])");
  EXPECT_FALSE(result.contains("context"));
  EXPECT_FALSE(result.contains("executionCount"));
}

TEST_F(WorkerTest, AnEngineThatFailsIsAResultToo) {
  const auto response = fetch("POST", "/execute", R"({"code":"fault"})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(json(response).at("error").at("name"), "ExecutionLimitError");
  EXPECT_EQ(json(response).at("error").at("message"), "out of fuel");
}

TEST_F(WorkerTest, WhatExecuteRefusesAndInWhichOrder) {
  EXPECT_EQ(fetch("POST", "/execute").status, 415);
  Request empty{
      .method = "POST", .path = "/execute", .headers = {{"content-type", "application/json"}}};
  EXPECT_EQ(message(worker_->fetch(empty)), "JSON body required");
  empty.headers.emplace_back("content-length", "98305");
  EXPECT_EQ(worker_->fetch(empty).status, 413);
  EXPECT_EQ(fetch("POST", "/execute", "\"" + std::string(98'304, 'x') + "\"").status, 413);
  EXPECT_EQ(refused("{"), "Invalid JSON");
  EXPECT_EQ(refused("null"), "Expected an object");
  EXPECT_EQ(refused(R"({"input":null,"language":1})"),
            "input is no longer supported; pass data with envVars");
  EXPECT_EQ(refused(R"({"language":1})"), "language must be a string");
  EXPECT_EQ(refused(R"({"language":"Python3"})"),
            "Unsupported language 'Python3' on this runtime (fake)");
  EXPECT_EQ(refused(R"({"code":" \n"})"), "Non-empty code is required");
  EXPECT_EQ(refused(R"({"code":7,"envVars":[]})"), "Non-empty code is required");
  EXPECT_EQ(fetch("POST", "/execute", R"({"code":")" + std::string(65'537, 'x') + "\"}").status,
            413);
  EXPECT_EQ(refused(R"({"code":"x","envVars":[]})"), "envVars must be an object");
  EXPECT_EQ(refused(R"({"code":"x","envVars":{"A":1}})"), "envVars values must be strings");
  EXPECT_THAT(refused(R"({"code":"x","envVars":{"A":"\u0000"}})"), HasSubstr("NUL"));
  EXPECT_EQ(refused(R"({"code":"x","args":[1]})"), "args must be an array of strings");
  EXPECT_EQ(fetch("GET", "/execute").status, 405);
  EXPECT_EQ(fetch("POST", "/execute", R"({"code":"x","language":"FAKE"})").status, 200);
  // An engine may run more than one language, by the name.
  engine_->during_run = [](const sw::Run& request) { EXPECT_EQ(request.language, "Fk"); };
  EXPECT_EQ(fetch("POST", "/execute", R"({"code":"x","language":"Fk"})").status, 200);
}

TEST_F(WorkerTest, KeysAreCheckedFirstThenWhetherThereAreContexts) {
  EXPECT_EQ(message(fetch("POST", "/interpreters/a%20b/contexts", "{}")),
            "Invalid interpreter key");
  EXPECT_EQ(message(fetch("DELETE", "/interpreters/" + std::string(129, 'k'))),
            "Invalid interpreter key");
  EXPECT_EQ(value("a b", "x"), "Invalid interpreter key");
  EXPECT_EQ(fetch("GET", "/interpreters/").status, 404);

  restart({.contexts = false});
  EXPECT_EQ(json(fetch("GET", "/interpreter")).at("contexts"), false);
  EXPECT_THAT(message(fetch("DELETE", "/interpreters/k")),
              HasSubstr("this Worker has no Interpreters"));
  engine_->sessions = false;
  EXPECT_EQ(message(fetch("GET", "/interpreters/k/nothing")),
            "Code contexts are not supported for fake");
  EXPECT_EQ(value("k", "x"), "Code contexts are not supported for fake");
}

TEST_F(WorkerTest, InterpretersAreApartAndGoOnAfterARestart) {
  EXPECT_EQ(fetch("POST", "/interpreters/a/contexts", R"({"id":"c"})").status, 201);
  EXPECT_EQ(fetch("POST", "/interpreters/b/contexts", R"({"id":"c"})").status, 201);
  EXPECT_EQ(value("a", R"({"op":"inc"})"), "1");
  EXPECT_EQ(value("a", R"({"op":"inc"})"), "2");
  EXPECT_EQ(value("b", R"({"op":"inc"})"), "1");
  restart();
  EXPECT_EQ(value("a", R"({"op":"inc"})"), "3");
  EXPECT_EQ(fetch("DELETE", "/interpreters/a").status, 200);
  EXPECT_EQ(value("a", R"({"op":"inc"})"), "Code context 'c' not found");
  EXPECT_EQ(value("b", R"({"op":"inc"})"), "2");
}

TEST_F(WorkerTest, RunsOfOneContextTakeTurns) {
  EXPECT_EQ(fetch("POST", "/interpreters/a/contexts", R"({"id":"c"})").status, 201);
  constexpr int kThreads = 4;
  constexpr int kRuns = 25;
  std::vector<std::thread> callers;
  for (int i = 0; i < kThreads; ++i) {
    callers.emplace_back([&] {
      for (int k = 0; k < kRuns; ++k) value("a", R"({"op":"inc"})");
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(value("a", R"({"op":"read"})"), std::to_string(kThreads * kRuns));
}

TEST_F(WorkerTest, CancellingReachesTheGuest) {
  EXPECT_EQ(fetch("POST", "/interpreters/a/contexts", R"({"id":"c"})").status, 201);
  value("a", R"({"op":"inc"})");
  const int waiting = FakeSession::waiting();
  std::stop_source first;
  auto running = std::async(std::launch::async,
                            [&] { return run("a", R"({"op":"wait"})", first.get_token()); });
  while (FakeSession::waiting() == waiting) std::this_thread::yield();
  first.request_stop();
  const auto stopped = running.get();
  EXPECT_EQ(stopped->outcome.ending, Ending::kCancelled);
  EXPECT_EQ(value("a", R"({"op":"inc"})"), "2");
}

TEST_F(WorkerTest, RunsOutsideOfContextsWaitForTheirTurn) {
  restart({.runs_at_once = 2});
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  engine_->during_run = [&](const sw::Run&) {
    const int now = ++running;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::yield();
    --running;
  };
  std::vector<std::future<int>> answers;
  for (int i = 0; i < 40; ++i) {
    answers.push_back(std::async(std::launch::async, [this] {
      return fetch("POST", "/execute", R"({"code":"1"})").status;
    }));
  }
  for (auto& status : answers) EXPECT_EQ(status.get(), 200);
  EXPECT_LE(most, 2);
}

TEST_F(WorkerTest, ACancelledRunOutsideOfContextsLeavesTheQueue) {
  restart({.runs_at_once = 1});
  std::promise<void> begun;
  engine_->during_run = [&](const sw::Run& request) {
    begun.set_value();
    while (!request.cancel.stop_requested()) std::this_thread::yield();
  };
  std::stop_source first;
  std::stop_source second;
  const auto execute = [this](const std::stop_source& stop) {
    return worker_
        ->fetch({.method = "POST",
                 .path = "/execute",
                 .headers = {{"content-type", "application/json"}},
                 .body = R"({"code":"1"})",
                 .cancel = stop.get_token()})
        .status;
  };
  auto running = std::async(std::launch::async, execute, first);
  begun.get_future().wait();
  auto queued = std::async(std::launch::async, execute, second);
  second.request_stop();
  EXPECT_EQ(queued.get(), 503);
  first.request_stop();
  EXPECT_EQ(running.get(), 200);
}

TEST_F(WorkerTest, AnInterpreterThatNobodyUsesIsDeleted) {
  restart({.idle_ttl = milliseconds(1000)});
  EXPECT_EQ(fetch("POST", "/interpreters/a/contexts", R"({"id":"c"})").status, 201);
  EXPECT_EQ(value("a", R"({"op":"inc"})"), "1");
  clock_.advance(milliseconds(1001));
  while (storage_->find({.class_name = "interpreter_fake", .id = "a"})->has_value())
    std::this_thread::yield();
  EXPECT_EQ(value("a", R"({"op":"inc"})"), "Code context 'c' not found");
}

TEST_F(WorkerTest, AFullDiskIsToldAndTheContextGoesOnFromWhatIsStored) {
  EXPECT_EQ(fetch("POST", "/interpreters/a/contexts", R"({"id":"c"})").status, 201);
  EXPECT_EQ(value("a", R"({"op":"inc"})"), "1");
  disk_.fail_commits(Error{ErrorCode::kUnavailable, "disk full", 0});
  EXPECT_THAT(value("a", R"({"op":"inc"})"), HasSubstr("disk full"));
  disk_.fail_commits(std::nullopt);
  EXPECT_EQ(value("a", R"({"op":"inc"})"), "2");
}

TEST_F(WorkerTest, InterpretersShareAPool) {
  restart({.residency = {.instances_max = 3}});
  const ResidencyPool& pool = parts_->residency;
  for (const char* key : {"a", "b", "c", "d", "e"}) {
    EXPECT_EQ(
        fetch("POST", std::string("/interpreters/") + key + "/contexts", R"({"id":"c"})").status,
        201);
    EXPECT_EQ(value(key, R"({"op":"inc"})"), "1");
  }
  EXPECT_EQ(engine_->alive, 3);
  EXPECT_EQ(pool.stats().instances, 3u);
  EXPECT_EQ(pool.stats().evicted, 2u);
  EXPECT_EQ(value("a", R"({"op":"inc"})"), "2");
  parts_->objects.shut_down();
  EXPECT_EQ(engine_->alive, 0);
  EXPECT_EQ(pool.stats().instances, 0u);
}

TEST(Worker, WithoutOptionsKeepsContextsInMemory) {
  const auto engine = std::make_shared<FakeEngine>();
  const auto worker = make_runtime_worker(engine).value();
  const Request create{
      .method = "POST", .path = "/interpreters/k/contexts", .body = R"({"id":"c"})"};
  EXPECT_EQ(worker->fetch(create).status, 201);
  EXPECT_EQ(worker->fetch(create).status, 400);
}

TEST(Worker, KeepsContextsInAFolder) {
  const auto folder =
      TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-worker-").value();
  const auto engine = std::make_shared<FakeEngine>();
  const Request create{
      .method = "POST", .path = "/interpreters/k/contexts", .body = R"({"id":"c"})"};
  EXPECT_EQ(
      make_runtime_worker(engine, {.storage_folder = folder.path()}).value()->fetch(create).status,
      201);
  EXPECT_EQ(
      make_runtime_worker(engine, {.storage_folder = folder.path()}).value()->fetch(create).status,
      400);
}

}  // namespace
}  // namespace sw::interpreter
