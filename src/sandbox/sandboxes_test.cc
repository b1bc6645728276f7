// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/sandboxes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <future>
#include <optional>
#include <thread>

#include "sandbox/fake_worker.h"
#include "sandbox/names.h"
#include "storage/memory/memory_storage.h"

namespace sw::sandbox {
namespace {

namespace json = boost::json;

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr object::Time kStart{std::chrono::milliseconds(1'700'000'000'000)};
constexpr std::chrono::hours kTtl{24};

/// A Worker whose runs wait for the test.
struct SlowWorker {
  explicit SlowWorker(bool contexts = true)
      : worker(std::make_shared<FakeWorker>("python", contexts)) {
    worker->before_run = [this](const Run& run) { gate.pass(run); };
    worker->after_destroy = [this] { destroyed.pass(""); };
    destroyed.open();
  }
  std::shared_ptr<FakeWorker> worker;  // shared with the bindings
  Gate gate;
  Gate destroyed;
};

struct SandboxesTest : ::testing::Test {
  SlowWorker python;
  SlowWorker ruby{false};
  object::ManualClock clock{kStart};
  storage::MemoryDisk disk{storage::Bodies::kTwice};
  executor::GuestPool guests{{.slots = 4, .stack_bytes = std::size_t{1} << 20}};
  SandboxParts parts{.bindings = {{"PYTHON", python.worker}, {"RUBY", ruby.worker}},
                     .clock = clock,
                     .guests = guests};
  std::unique_ptr<storage::Storage> storage = storage::open_memory_storage(disk);
  std::optional<object::ObjectHost> objects_;
  std::optional<Sandboxes> sandboxes_;

  Sandboxes& sandboxes() {
    if (!sandboxes_) {
      objects_.emplace(*storage, clock, object::HostOptions{});
      sandboxes_.emplace(*objects_, parts);
    }
    return *sandboxes_;
  }
  void restart() {
    sandboxes_.reset();
    objects_.reset();
    storage = storage::open_memory_storage(disk);
  }
  protocol::Response fetch(const std::string& id, const char* method, const char* path,
                           const json::value& body = nullptr, std::stop_token cancel = {}) {
    return sandboxes().fetch({.method = method,
                              .path = path,
                              .headers = {{"x-sandbox-id", id}},
                              .body = body.is_null() ? std::string() : json::serialize(body),
                              .cancel = std::move(cancel)});
  }
  int status(const std::string& id, const char* method, const char* path,
             const json::value& body = nullptr) {
    return fetch(id, method, path, body).status;
  }
  json::value get(const std::string& id, const char* path) {
    return json::parse(fetch(id, "GET", path).body);
  }
  /// A run on a thread of its own.
  std::future<protocol::Response> run(const std::string& id, const char* binding = "PYTHON",
                                      std::stop_token cancel = {}) {
    (void)sandboxes();
    return std::async(std::launch::async, [=, this] {
      return fetch(id, "POST", "/execute", {{"binding", binding}, {"code", "1"}}, cancel);
    });
  }
};

TEST_F(SandboxesTest, EachIdIsASandboxOfItsOwnThatOutlivesTheHost) {
  EXPECT_EQ(status("a", "POST", "/files", {{"op", "write"}, {"path", "f"}, {"content", "x"}}), 200);
  EXPECT_EQ(status("b", "POST", "/files", {{"op", "read"}, {"path", "f"}}), 404);
  restart();
  EXPECT_EQ(status("a", "POST", "/files", {{"op", "read"}, {"path", "f"}}), 200);
  EXPECT_EQ(status("a b", "GET", "/"), 400);
}

TEST_F(SandboxesTest, RunsOfOneContextTakeTurnsAndThoseOfOtherSandboxesDoNotWait) {
  auto running = run("a");
  python.gate.wait_for("1");
  auto waiting = run("a");
  EXPECT_EQ(status("a", "GET", "/"), 200);
  auto other = run("b");
  python.gate.wait_for("1", 2);
  EXPECT_EQ(waiting.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  python.gate.open();
  EXPECT_EQ(other.get().status, 200);
  EXPECT_EQ(json::parse(running.get().body).at("executionCount"), 1);
  EXPECT_EQ(json::parse(waiting.get().body).at("executionCount"), 2);
}

TEST_F(SandboxesTest, ARequestThatNobodyWaitsForEndsItsRun) {
  std::stop_source stop;
  auto running = run("a", "PYTHON", stop.get_token());
  python.gate.wait_for("1");
  stop.request_stop();
  const protocol::Response response = running.get();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(json::parse(response.body).at("ending"), "cancelled");
}

TEST_F(SandboxesTest, CancellingReachesRunsOutsideOfContexts) {
  std::stop_source stop;
  auto running = run("a", "RUBY", stop.get_token());
  ruby.gate.wait_for("1");
  stop.request_stop();
  EXPECT_EQ(running.get().status, 200);
}

TEST_F(SandboxesTest, ShuttingDownWaitsForTheRunsInProgress) {
  auto in_context = run("a");
  auto outside = run("b", "RUBY");
  python.gate.wait_for("1");
  ruby.gate.wait_for("1");
  auto down = std::async(std::launch::async, [this] { objects_->shut_down(); });
  while (sandboxes().get("c").ok()) std::this_thread::yield();
  EXPECT_EQ(status("c", "GET", "/"), 503);
  EXPECT_EQ(down.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  python.gate.open();
  ruby.gate.open();
  EXPECT_EQ(in_context.get().status, 200);
  EXPECT_EQ(outside.get().status, 200);
  down.get();
}

TEST_F(SandboxesTest, WhatCouldNotBeStoredIsNotAnsweredAsDone) {
  python.gate.open();
  EXPECT_EQ(run("a").get().status, 200);
  disk.fail_commits(Error{ErrorCode::kUnavailable, "disk full", 0});
  const protocol::Response failed = run("a").get();
  EXPECT_EQ(failed.status, 503);
  EXPECT_THAT(failed.body, HasSubstr("disk full"));
  disk.fail_commits(std::nullopt);
  EXPECT_EQ(json::parse(run("a").get().body).at("executionCount"), 2);
}

TEST_F(SandboxesTest, AnAlarmDestroysASandboxThatNobodyUses) {
  python.gate.open();
  EXPECT_EQ(run("a").get().status, 200);
  EXPECT_EQ(python.worker->interpreter_count(), 1u);
  clock.advance(kTtl + std::chrono::seconds(1));
  (void)sandboxes();
  objects_->start_alarms();
  python.destroyed.wait_for("");
  EXPECT_THAT(get("a", "/contexts").at("contexts").as_array(), IsEmpty());
}

TEST_F(SandboxesTest, ADestroyedSandboxLeavesNothing) {
  python.gate.open();
  EXPECT_EQ(run("a").get().status, 200);
  EXPECT_EQ(status("a", "DELETE", "/"), 200);
  EXPECT_FALSE(*storage->find(object_name("a").value()));
  EXPECT_EQ(get("a", "/").at("contexts").as_array().size(), 0u);
}

TEST_F(SandboxesTest, ProgramsCanUseASandboxWithoutRequests) {
  python.gate.open();
  const auto sandbox = sandboxes().get("a");
  ASSERT_TRUE(sandbox.ok());
  RunOutput output;
  const auto finished = (*sandbox)->run({.code = "1"}, "PYTHON", output);
  ASSERT_TRUE(finished.ok());
  EXPECT_EQ(finished->outcome.context->executions, 1u);
  EXPECT_EQ(finished->language, "python");
  EXPECT_FALSE(sandboxes().get("no good").ok());
}

TEST_F(SandboxesTest, TheAlarmOfASandboxWithARunInProgressComesAgain) {
  python.gate.open("first");
  RunOutput output;
  auto sandbox = sandboxes().get("a").value();
  ASSERT_TRUE(sandbox->run({.code = "first"}, "PYTHON", output).ok());
  auto running = run("a");
  python.gate.wait_for("1");
  clock.advance(kTtl + std::chrono::seconds(1));
  EXPECT_TRUE(sandbox->on_alarm(clock.now()).ok());
  python.worker->unreachable = Error{ErrorCode::kUnreachable, "gone", 0};
  python.gate.open();
  EXPECT_EQ(running.get().status, 502) << "such a run does not count as use";
  python.worker->unreachable.reset();
  EXPECT_EQ(python.worker->interpreter_count(), 1u);
  sandbox.reset();
  sandboxes_.reset();
  objects_.reset();
  clock.advance(kTtl + std::chrono::seconds(1));
  (void)sandboxes();
  objects_->start_alarms();
  python.destroyed.wait_for("");
}

}  // namespace
}  // namespace sw::sandbox
