// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Contexts and their versions.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "sandbox/names.h"
#include "sandbox/sandbox_fixture.h"

namespace sw::sandbox {
namespace {

namespace json = boost::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST_F(SandboxTest, AnUnknownBindingIsRefused) {
  EXPECT_EQ(post("/contexts", {{"binding", "NOPE"}}).refusal(),
            "400 VALIDATION_FAILED Unknown binding 'NOPE'");
  EXPECT_EQ(post("/contexts", {{"binding", "has-dash"}}).refusal(),
            "400 VALIDATION_FAILED Unknown binding 'has-dash'");
}

TEST_F(SandboxTest, WhatIsNoRuntimeWorkerIsRefused) {
  python->self.protocol = 2;
  EXPECT_EQ(post("/contexts", {{"binding", "PYTHON"}}).refusal(),
            "400 VALIDATION_FAILED Binding 'PYTHON' speaks interpreter protocol 2; this caller "
            "supports 1");
  python->unreachable = kGone;
  EXPECT_EQ(post("/contexts", {{"binding", "PYTHON"}}).refusal(),
            "400 VALIDATION_FAILED Binding 'PYTHON' is not a sandbox-workers runtime Worker");
}

TEST_F(SandboxTest, AContextIsMadeListedAndAnnouncedOnce) {
  const Reply made = post("/contexts", {{"binding", "JAVASCRIPT"}, {"cwd", "src/../lib"}});
  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(made.text("/binding"), "JAVASCRIPT");
  EXPECT_EQ(made.text("/language"), "javascript");
  EXPECT_EQ(made.text("/cwd"), "/workspace/lib");
  EXPECT_EQ(made.text("/createdAt"), "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(made.text("/lastUsed"), "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(made.body.as_object().size(), 6u);
  EXPECT_THAT(made.text("/id"), SizeIs(36));
  EXPECT_THAT(context_ids(), ElementsAre(made.text("/id")));
  ASSERT_EQ(javascript->interpreters.size(), 1u);
  const auto& [key, interpreter] = *javascript->interpreters.begin();
  EXPECT_THAT(key, AllOf(SizeIs(64), Not(HasSubstr("demo"))));
  EXPECT_THAT(interpreter.executions, ElementsAre(Pair(made.text("/id"), 0)));
  restart();
  EXPECT_THAT(context_ids(), ElementsAre(made.text("/id")));
}

TEST_F(SandboxTest, ContextsAreValidated) {
  const auto refusal = [&](const json::value& body) { return post("/contexts", body).refusal(); };
  EXPECT_EQ(refusal(json::object()), "400 VALIDATION_FAILED binding is required");
  EXPECT_EQ(refusal({{"binding", "PYTHON"}, {"id", std::string(129, 'x')}, {"cwd", ""}}),
            "400 VALIDATION_FAILED id must be a non-empty string of at most 128 characters");
  EXPECT_EQ(refusal({{"binding", "PYTHON"}, {"cwd", ""}}),
            "400 VALIDATION_FAILED cwd must be a non-empty string");
  EXPECT_EQ(refusal({{"binding", "PYTHON"}, {"cwd", "/etc"}}),
            "400 VALIDATION_FAILED Path escapes /workspace: /etc");
  EXPECT_EQ(refusal({{"binding", "PYTHON"}, {"envVars", 1}}),
            "400 VALIDATION_FAILED envVars must be an object");
  EXPECT_EQ(refusal({{"binding", "PYTHON"}, {"envVars", {{"a-b", "x"}}}}),
            "400 VALIDATION_FAILED Invalid envVars key: a-b");
  EXPECT_EQ(refusal({{"binding", "PYTHON"}, {"envVars", {{"A", nullptr}}}}),
            "400 VALIDATION_FAILED envVars values must be strings");
}

TEST_F(SandboxTest, ThereAreAtMostEightContextsOverAllBindings) {
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(post("/contexts", {{"binding", i % 2 ? "PYTHON" : "JAVASCRIPT"}}).status, 201);
  EXPECT_EQ(post("/contexts", {{"binding", "PYTHON"}}).refusal(),
            "400 VALIDATION_FAILED Cannot create more than 8 code contexts");
}

TEST_F(SandboxTest, TheDefaultContextOfABindingIsItsOldest) {
  const std::string id = execute("PYTHON").text("/context/id");
  EXPECT_EQ(execute("PYTHON").text("/context/id"), id);
  EXPECT_THAT(context_ids(), SizeIs(1));
  create("PYTHON");
  EXPECT_EQ(execute("PYTHON").text("/context/id"), id);
  const std::string explicit_one = create("JAVASCRIPT");
  EXPECT_EQ(execute("JAVASCRIPT").text("/context/id"), explicit_one);
  remove("/contexts/" + id);
  EXPECT_NE(execute("PYTHON").text("/context/id"), id);
}

TEST_F(SandboxTest, ABindingWithoutContextsRunsTheCodeOnce) {
  ASSERT_EQ(post("/env", {{"envVars", {{"A", "sandbox"}, {"B", "sandbox"}}}}).status, 200);
  EXPECT_EQ(post("/contexts", {{"binding", "RUBY"}}).refusal(),
            "400 VALIDATION_FAILED Code contexts are not supported by binding 'RUBY' (ruby)");
  const Reply reply =
      post("/execute",
           {{"binding", "RUBY"}, {"code", "1"}, {"envVars", {{"B", nullptr}, {"C", "call"}}}});
  EXPECT_EQ(reply.status, 200);
  EXPECT_FALSE(reply.body.as_object().contains("context"));
  EXPECT_FALSE(reply.body.as_object().contains("executionCount"));
  EXPECT_EQ(reply.text("/logs/stdout/0"), "ran once");
  EXPECT_EQ(ruby->runs_once.back().code, "1");
  EXPECT_THAT(ruby->runs_once.back().env, ElementsAre(Pair("A", "sandbox"), Pair("C", "call")));
}

TEST_F(SandboxTest, DeletingAContextLeavesTheFilesAndAsksItsWorkerOnce) {
  ASSERT_EQ(write("f", "text").status, 200);
  const std::string id = create("PYTHON");
  EXPECT_EQ(remove("/contexts/" + id).status, 200);
  EXPECT_EQ(python->calls.back(), "remove " + id);
  EXPECT_EQ(remove("/contexts/" + id).refusal(),
            "404 CONTEXT_NOT_FOUND Code context '" + id + "' not found");
  EXPECT_EQ(read("f"), "text");
}

TEST_F(SandboxTest, AContextCanBeDeletedWhoseWorkerIsGone) {
  const std::string id = create("PYTHON");
  python->unreachable = kGone;
  EXPECT_EQ(remove("/contexts/" + id).status, 200);
  EXPECT_THAT(context_ids(), IsEmpty());
}

TEST_F(SandboxTest, ACallerMayNameAContext) {
  EXPECT_EQ(post("/contexts", {{"binding", "PYTHON"}, {"id", "my context"}}).text("/id"),
            "my context");
  EXPECT_EQ(post("/contexts", {{"binding", "PYTHON"}, {"id", "my context"}}).refusal(),
            "400 VALIDATION_FAILED Code context 'my context' already exists");
  EXPECT_EQ(post("/execute", {{"contextId", "my context"}, {"code", "1"}}).status, 200);
  EXPECT_EQ(remove("/contexts/my%20context").status, 200);
  EXPECT_EQ(post("/contexts", {{"binding", "PYTHON"}, {"id", std::string(129, 'x')}}).status, 400);
}

TEST_F(SandboxTest, ANameLeftBehindAtTheInterpreterIsTakenOver) {
  post("/contexts", {{"binding", "PYTHON"}, {"id", "mine"}});
  EXPECT_EQ(post("/execute", {{"contextId", "mine"}, {"code", "1"}}).status, 200);
  python->unreachable = kGone;
  remove("/contexts/mine");
  python->unreachable.reset();
  EXPECT_EQ(post("/contexts", {{"binding", "PYTHON"}, {"id", "mine"}}).status, 201);
  EXPECT_EQ(python->interpreters.begin()->second.executions["mine"], 0u)
      << "the old memory is still there";
}

// --- versions

TEST_F(SandboxTest, AForkIsAContextOfItsOwn) {
  const std::string id =
      post("/contexts", {{"binding", "PYTHON"}, {"envVars", {{"A", "1"}}}}).text("/id");
  execute("PYTHON");
  const Reply fork = post("/contexts/" + id + "/fork", {{"id", "twin"}});
  EXPECT_EQ(fork.status, 201);
  EXPECT_EQ(fork.text("/id"), "twin");
  EXPECT_EQ(fork.text("/language"), "python");
  EXPECT_EQ(post("/execute", {{"contextId", "twin"}, {"code", "1"}}).number("/executionCount"), 2);
  EXPECT_THAT(python->runs.back().run.env, ElementsAre(Pair("A", "1")));
  EXPECT_THAT(request("POST", "/contexts/" + id + "/fork").text("/id"), SizeIs(36));
  EXPECT_EQ(post("/contexts/" + id + "/fork", {{"id", "twin"}}).status, 400);
  EXPECT_EQ(post("/contexts/nope/fork", json::object()).status, 404);
  // A binding can be gone when a sandbox is opened again.
  bindings.erase("PYTHON");
  EXPECT_EQ(post("/contexts/" + id + "/fork", {{"id", "x"}}).refusal(),
            "400 VALIDATION_FAILED Unknown binding 'PYTHON'");
  EXPECT_EQ(request("POST", "/contexts/" + id + "/fork").status, 400);
}

TEST_F(SandboxTest, VersionsAreTheInterpretersAffair) {
  const std::string id = create("PYTHON");
  const std::string path = "/contexts/" + id;
  execute("PYTHON");
  EXPECT_EQ(post(path + "/undo", {{"runs", 1}}).status, 200);
  EXPECT_EQ(python->calls.back(), "undo " + id + " 1");
  execute("PYTHON");
  EXPECT_EQ(python->runs.back().executions_known, 1u) << "what the Interpreter said after the undo";
  EXPECT_EQ(post(path + "/checkpoints", {{"name", "a b"}}).status, 200);
  EXPECT_EQ(get(path + "/checkpoints").text("/checkpoints/0/name"), "a");
  EXPECT_EQ(post(path + "/restore", {{"name", "a b"}}).status, 200);
  EXPECT_EQ(python->calls.back(), "restore " + id + " a b");
  EXPECT_EQ(post(path + "/restore", {{"step", 7}}).status, 200);
  EXPECT_EQ(python->calls.back(), "restore " + id + " step 7");
  EXPECT_EQ(post(path + "/restore", json::object()).refusal(),
            "400 VALIDATION_FAILED step or name is required");
  EXPECT_EQ(get(path + "/history").text("/history/0/code"), "x = 1");
  EXPECT_EQ(post(path + "/fork", {{"id", "back"}, {"step", 7}}).status, 201);
  EXPECT_THAT(python->calls, Contains("fork " + id + " back step 7"));
  EXPECT_EQ(remove(path + "/checkpoints/a%20b").status, 200);
  EXPECT_THAT(python->calls, Contains("remove_checkpoint " + id + " a b"));
  EXPECT_EQ(post(path + "/undo", {{"runs", 0}}).status, 400);
  EXPECT_EQ(post(path + "/checkpoints", json::object()).status, 400);
  EXPECT_EQ(post("/contexts/nope/undo", {{"runs", 1}}).status, 404);
}

TEST_F(SandboxTest, AContextOfAnInterpreterThatRefusesIsAnsweredWithItsOwnWords) {
  const std::string path = "/contexts/" + create("PYTHON");
  python->interpreters.begin()->second.executions.clear();
  EXPECT_THAT(post(path + "/undo", {{"runs", 1}}).refusal(), StartsWith("404 CONTEXT_NOT_FOUND"));
}

}  // namespace
}  // namespace sw::sandbox
