// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/sandbox_object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <condition_variable>
#include <future>
#include <mutex>

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
class SlowWorker {
 public:
  explicit SlowWorker(bool contexts = true)
      : worker_(std::make_shared<FakeWorker>("python", contexts)) {
    worker_->before_run = [this](const std::stop_token& cancel) {
      std::unique_lock lock(mutex_);
      ++running_;
      changed_.notify_all();
      changed_.wait(lock, cancel, [this] { return open_; });
      --running_;
    };
    worker_->after_destroy = [this] {
      const std::lock_guard lock(mutex_);
      changed_.notify_all();
    };
  }

  const std::shared_ptr<FakeWorker>& worker() const { return worker_; }
  void wait_for_runs(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return running_ >= count; });
  }
  void wait_for_no_interpreters() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return worker_->interpreter_count() == 0; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  std::size_t interpreters() { return worker_->interpreter_count(); }

 private:
  const std::shared_ptr<FakeWorker> worker_;  // shared with the bindings
  std::mutex mutex_;                          // guards all below
  std::condition_variable_any changed_;
  int running_ = 0;
  bool open_ = false;
};

struct SandboxesTest : ::testing::Test {
  std::shared_ptr<SlowWorker> python = std::make_shared<SlowWorker>();
  std::shared_ptr<SlowWorker> ruby = std::make_shared<SlowWorker>(false);
  std::chrono::milliseconds drain_max = std::chrono::seconds(10);
  object::ManualClock clock{kStart};
  storage::MemoryDisk disk{storage::Bodies::kTwice};
  std::unique_ptr<storage::Storage> storage = storage::open_memory_storage(disk);
  std::optional<Sandboxes> sandboxes_;

  Sandboxes& sandboxes() {
    if (!sandboxes_)
      sandboxes_.emplace(*storage, clock,
                         protocol::Bindings{{"PYTHON", python->worker()}, {"RUBY", ruby->worker()}},
                         SandboxOptions{}, object::HostOptions{.drain_max = drain_max});
    return *sandboxes_;
  }
  void restart() {
    sandboxes_.reset();
    storage = storage::open_memory_storage(disk);
  }
  static protocol::Request request(std::string id, std::string method, std::string path,
                                   const json::value& body) {
    return {.method = std::move(method),
            .path = std::move(path),
            .headers = {{"x-sandbox-id", std::move(id)}},
            .body = body.is_null() ? std::string() : json::serialize(body)};
  }
  int status(const std::string& id, const char* method, const char* path,
             const json::value& body = nullptr) {
    return sandboxes().fetch(request(id, method, path, body)).status;
  }
  json::value get(const std::string& id, const char* path) {
    return json::parse(sandboxes().fetch(request(id, "GET", path, nullptr)).body);
  }
  /// Sends a run, and gives its answer when it is there.
  std::future<protocol::Response> run(const std::string& id,
                                      std::shared_ptr<object::Call>* call = nullptr,
                                      const char* binding = "PYTHON", std::stop_token cancel = {}) {
    const auto promise = std::make_shared<std::promise<protocol::Response>>();
    protocol::Request message =
        request(id, "POST", "/execute", {{"binding", binding}, {"code", "1"}});
    message.cancel = std::move(cancel);
    auto sent = sandboxes().send(std::move(message), [promise](protocol::Response response) {
      promise->set_value(std::move(response));
    });
    if (call) *call = std::move(sent);
    return promise->get_future();
  }
};

TEST_F(SandboxesTest, EachIdIsASandboxOfItsOwnThatOutlivesTheHost) {
  EXPECT_EQ(status("a", "POST", "/files", {{"op", "write"}, {"path", "f"}, {"content", "x"}}), 200);
  EXPECT_EQ(status("b", "POST", "/files", {{"op", "read"}, {"path", "f"}}), 404);
  restart();
  EXPECT_EQ(status("a", "POST", "/files", {{"op", "read"}, {"path", "f"}}), 200);
  EXPECT_EQ(status("a b", "GET", "/"), 400);
}

TEST_F(SandboxesTest, ARequestThatIsRefusedAtOnceCanBeCancelledLikeOthers) {
  std::shared_ptr<object::Call> call;
  auto refused = run("a b", &call);
  ASSERT_TRUE(call);
  call->cancel();
  EXPECT_EQ(refused.get().status, 400);
}

TEST_F(SandboxesTest, RequestsOfOneSandboxWaitForEachOtherAndThoseOfOthersDoNot) {
  auto running = run("a");
  python->wait_for_runs(1);
  auto waiting = run("a");
  EXPECT_EQ(status("b", "GET", "/"), 200);
  EXPECT_EQ(waiting.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  python->open();
  EXPECT_EQ(running.get().status, 200);
  EXPECT_EQ(json::parse(waiting.get().body).at("executionCount"), 2);
}

TEST_F(SandboxesTest, ARequestThatNobodyWaitsForEndsItsRun) {
  std::shared_ptr<object::Call> call;
  auto running = run("a", &call);
  python->wait_for_runs(1);
  call->cancel();
  const protocol::Response response = running.get();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(json::parse(response.body).at("ending"), "cancelled");
}

TEST_F(SandboxesTest, TheRequestsOwnTokenEndsItsRunToo) {
  std::stop_source stop;
  auto running = run("a", nullptr, "PYTHON", stop.get_token());
  python->wait_for_runs(1);
  stop.request_stop();
  EXPECT_EQ(json::parse(running.get().body).at("ending"), "cancelled");
}

TEST_F(SandboxesTest, CancellingReachesRunsOutsideOfContexts) {
  std::shared_ptr<object::Call> call;
  auto running = run("a", &call, "RUBY");
  ruby->wait_for_runs(1);
  call->cancel();
  EXPECT_EQ(running.get().status, 200);
}

TEST_F(SandboxesTest, ShuttingDownEndsRunsThatGoOnForTooLong) {
  drain_max = std::chrono::milliseconds(1);
  auto in_context = run("a");
  auto outside = run("b", nullptr, "RUBY");
  python->wait_for_runs(1);
  ruby->wait_for_runs(1);
  sandboxes_.reset();
  EXPECT_EQ(json::parse(in_context.get().body).at("ending"), "cancelled");
  EXPECT_EQ(outside.get().status, 200);
}

TEST_F(SandboxesTest, WhatCouldNotBeStoredIsNotAnsweredAsDone) {
  python->open();
  EXPECT_EQ(run("a").get().status, 200);
  disk.fail_commits(Error{ErrorCode::kUnavailable, "disk full", 0});
  const protocol::Response failed = run("a").get();
  EXPECT_EQ(failed.status, 503);
  EXPECT_THAT(failed.body, HasSubstr("disk full"));
  disk.fail_commits(std::nullopt);
  EXPECT_EQ(json::parse(run("a").get().body).at("executionCount"), 2);
}

TEST_F(SandboxesTest, AnAlarmDestroysASandboxThatNobodyUses) {
  python->open();
  EXPECT_EQ(run("a").get().status, 200);
  EXPECT_EQ(python->interpreters(), 1u);
  clock.advance(kTtl + std::chrono::seconds(1));
  sandboxes().start_alarms();
  python->wait_for_no_interpreters();
  EXPECT_THAT(get("a", "/contexts").at("contexts").as_array(), IsEmpty());
}

TEST_F(SandboxesTest, ADestroyedSandboxLeavesNothing) {
  python->open();
  EXPECT_EQ(run("a").get().status, 200);
  EXPECT_EQ(status("a", "DELETE", "/"), 200);
  EXPECT_FALSE(*storage->find(object_name("a").value()));
  EXPECT_EQ(get("a", "/").at("contexts").as_array().size(), 0u);
}

TEST_F(SandboxesTest, ProgramsCanUseASandboxWithoutRequests) {
  python->open();
  std::uint64_t executions = 0;
  ASSERT_TRUE(sandboxes()
                  .use("a",
                       [&](Sandbox& sandbox) {
                         RunOutput output;
                         Cell cell;
                         cell.code = "1";
                         cell.binding = "PYTHON";
                         const auto answer = sandbox.execute(cell, output);
                         if (answer.ok()) executions = answer->context->executions;
                       })
                  .ok());
  EXPECT_EQ(executions, 1u);
  EXPECT_FALSE(sandboxes().use("no good", [](Sandbox&) {}).ok());
}

}  // namespace
}  // namespace sw::sandbox
