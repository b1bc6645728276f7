// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Contexts, with an engine without Wasm: how they are made, end and expire.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "interpreter/interpreter_fixture.h"

namespace sw::interpreter {
namespace {

using ::testing::HasSubstr;

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

// --- the end of a context

TEST_F(InterpreterTest, EndingAContextRunsItsExitHandlersAndItsInstanceIsGone) {
  run(kInc);
  protocol::ExecuteArgs args;
  args.run.ends_context = true;
  const ExecuteResponse ended = take(ask("", args));
  EXPECT_FALSE(ended.outcome.error);
  EXPECT_EQ(printed_.out, "ended at 1");
  EXPECT_EQ(sandbox_.read("ended", FileEncoding::kUtf8)->content, "ended at 1");
  EXPECT_EQ(engine_->alive, 0);
  EXPECT_EQ(run(kInc).outcome.context->state, ContextState::kRestored)
      << "until it is removed, which it is once its files are stored";
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
  EXPECT_EQ(engine_->alive, 0);
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
