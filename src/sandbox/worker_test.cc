// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// A sandbox over a true runtime Worker: files here, memory there.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "interpreter/fake_engine.h"
#include "object/clock.h"
#include "sandbox/names.h"
#include "sandbox/sandbox.h"
#include "sandbox_workers/interpreter/runtime_worker.h"
#include "storage/memory/memory_storage.h"

namespace sw::sandbox {
namespace {

namespace json = boost::json;

using ::testing::HasSubstr;
using ::testing::SizeIs;

struct WorkerTest : ::testing::Test {
  std::unique_ptr<object::Clock> clock = object::make_system_clock();
  executor::GuestPool guests{{.stack_bytes = std::size_t{1} << 20}};
  SandboxParts parts{
      .bindings =
          {{"FAKE",
            interpreter::make_runtime_worker(std::make_shared<interpreter::FakeEngine>()).value()}},
      .clock = *clock,
      .guests = guests};
  storage::MemoryDisk disk{storage::Bodies::kTwice};
  std::unique_ptr<storage::Storage> storage = storage::open_memory_storage(disk);
  std::unique_ptr<storage::ObjectStorage> object =
      storage->open(object_name("demo").value(), Sandbox::schema()).value();
  Sandbox sandbox{*object, parts};

  json::value request(std::string method, std::string path, const json::value& body) {
    const auto response = sandbox.fetch({.method = std::move(method),
                                         .path = std::move(path),
                                         .headers = {{"x-sandbox-id", "demo"}},
                                         .body = body.is_null() ? "" : json::serialize(body)});
    return json::parse(response.body);
  }
  json::value run(const json::value& op) {
    return request("POST", "/execute", {{"binding", "FAKE"}, {"code", json::serialize(op)}});
  }
  /// The counter after a run.
  static std::string count(const json::value& answer) {
    return std::string(answer.at_pointer("/results/0/text").as_string());
  }
  std::string context() {
    return std::string(
        request("GET", "/contexts", nullptr).at_pointer("/contexts/0/id").as_string());
  }
  json::value read(const char* path) {
    return request("POST", "/files", {{"op", "read"}, {"path", path}});
  }
};

TEST_F(WorkerTest, MemoryIsKeptThereAndFilesAreKeptHere) {
  EXPECT_EQ(count(run({{"op", "inc"}})), "1");
  const json::value wrote =
      run({{"op", "write"}, {"path", "/workspace/f"}, {"content", "by the run"}});
  EXPECT_EQ(wrote.at("executionCount"), 2);
  EXPECT_EQ(wrote.at_pointer("/context/state"), "live");
  EXPECT_EQ(read("f").at("content"), "by the run");
  EXPECT_EQ(count(run({{"op", "inc"}})), "2");
}

TEST_F(WorkerTest, ARunWhoseFilesWereLostIsTakenBackFromMemory) {
  EXPECT_EQ(count(run({{"op", "inc"}})), "1");
  disk.fail_commits(Error{ErrorCode::kUnavailable, "disk full", 0});
  EXPECT_EQ(run({{"op", "inc"}}).at("code"), "INTERNAL_ERROR");
  disk.fail_commits(std::nullopt);
  const json::value next = run({{"op", "read"}});
  EXPECT_EQ(count(next), "1");
  EXPECT_EQ(next.at("executionCount"), 2);
  EXPECT_THAT(std::string(next.at_pointer("/context/note").as_string()), HasSubstr("undone"));
  EXPECT_FALSE(run({{"op", "read"}}).at("context").as_object().contains("note")) << "said once";
}

TEST_F(WorkerTest, AFailedRunWhoseFilesWereLostIsTakenBackFromMemory) {
  run({{"op", "write"}, {"path", "/workspace/f"}, {"content", "good"}, {"then", "inc"}});
  disk.fail_commits(Error{ErrorCode::kUnavailable, "disk full", 0});
  const json::value failing = {
      {"op", "write"}, {"path", "/workspace/f"}, {"content", "bad"}, {"then", "error"}};
  EXPECT_EQ(run(failing).at("code"), "INTERNAL_ERROR");
  disk.fail_commits(std::nullopt);
  const json::value next = run({{"op", "read"}});
  EXPECT_EQ(count(next), "1");
  EXPECT_THAT(std::string(next.at_pointer("/context/note").as_string()), HasSubstr("undone"));
  EXPECT_EQ(read("f").at("content"), "good");
}

TEST_F(WorkerTest, AnErrorKeepsFilesAndMemoryOrNeither) {
  const json::value write = {
      {"op", "write"}, {"path", "/workspace/f"}, {"content", "bad"}, {"then", "error"}};
  run({{"op", "write"}, {"path", "/workspace/f"}, {"content", "good"}});
  const auto run_and = [&](const char* on_error) {
    const json::value body = {
        {"binding", "FAKE"}, {"code", json::serialize(write)}, {"onError", on_error}};
    return request("POST", "/execute", body);
  };
  const json::value rolled_back = run_and("rollback");
  EXPECT_EQ(rolled_back.at("ending"), "guest-error");
  EXPECT_THAT(std::string(rolled_back.at_pointer("/context/note").as_string()),
              HasSubstr("rolled back"));
  EXPECT_EQ(read("f").at("content"), "good");
  EXPECT_EQ(count(run({{"op", "read"}})), "0");
  EXPECT_EQ(run_and("keep").at("executionCount"), 4);
  EXPECT_EQ(read("f").at("content"), "bad");
  EXPECT_EQ(count(run({{"op", "read"}})), "1");
}

TEST_F(WorkerTest, CellsAreCalledByTheNumberThatTheCallerSees) {
  const auto name = [&](const char* id) {
    const json::value ran =
        request("POST", "/execute", {{"contextId", id}, {"code", R"({"op":"error"})"}});
    return fmt::format("{} {}", ran.at("executionCount").to_number<int>(),
                       std::string_view(ran.at_pointer("/error/traceback/0").as_string()));
  };
  request("POST", "/contexts", {{"binding", "FAKE"}, {"id", "c"}});
  EXPECT_EQ(name("c"), "1 <cell 1>");
  run({{"op", "invalidate"}});
  EXPECT_EQ(name("c"), "3 <cell 3>");
  run({{"op", "invalidate"}});
  request("POST", "/contexts/c/fork", {{"id", "twin"}});
  EXPECT_EQ(name("twin"), "4 <cell 4>") << "a fork goes on from the run that is saved";
}

TEST_F(WorkerTest, VersionsGoThroughToTheInterpreter) {
  run({{"op", "inc"}});
  const std::string path = "/contexts/" + context();
  EXPECT_TRUE(request("POST", path + "/checkpoints", {{"name", "one"}}).at("success").as_bool());
  run({{"op", "inc"}});
  EXPECT_EQ(request("POST", path + "/fork", {{"id", "twin"}}).at("id"), "twin");
  run({{"op", "inc"}});
  EXPECT_TRUE(request("POST", path + "/undo", {{"runs", 1}}).at("success").as_bool());
  EXPECT_EQ(count(run({{"op", "read"}})), "2");
  EXPECT_THAT(request("GET", path + "/checkpoints", nullptr).at("checkpoints").as_array(),
              SizeIs(1));
  EXPECT_TRUE(request("POST", path + "/restore", {{"name", "one"}}).at("success").as_bool());
  EXPECT_EQ(count(run({{"op", "read"}})), "1");
  EXPECT_TRUE(request("POST", path + "/restore", {{"step", 2}}).at("success").as_bool());
  EXPECT_EQ(count(run({{"op", "read"}})), "2");
  EXPECT_THAT(request("GET", path + "/history", nullptr).at("history").as_array(), SizeIs(6));
  const json::value twin =
      request("POST", "/execute", {{"contextId", "twin"}, {"code", R"({"op":"inc"})"}});
  EXPECT_EQ(count(twin), "3");
}

TEST_F(WorkerTest, DestroyingReachesTheInterpreter) {
  run({{"op", "inc"}});
  EXPECT_TRUE(request("DELETE", "/", nullptr).at("success").as_bool());
  EXPECT_EQ(count(run({{"op", "inc"}})), "1");
}

}  // namespace
}  // namespace sw::sandbox
