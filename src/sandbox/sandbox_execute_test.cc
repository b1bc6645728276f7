// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What a run is sent, what it answers, and what is stored of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "sandbox/sandbox_fixture.h"

namespace sw::sandbox {
namespace {

namespace json = boost::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST_F(SandboxTest, TheFirstRunGetsAllFilesAndTheManifestHoldsNoContents) {
  ASSERT_EQ(write("a", "hi").status, 200);
  ASSERT_EQ(write("b", "b").status, 200);
  execute("PYTHON");
  EXPECT_THAT(python->asked_for, ElementsAre(ElementsAre("/workspace/a", "/workspace/b")));
  EXPECT_THAT(manifest_of(*python->runs.back().run.files->state).files,
              Contains(Pair("/workspace/a", "683af69a9f4e3ad4")));
  EXPECT_EQ(python->runs.back().run.files->limits->file_bytes_max, 1048576u);
}

TEST_F(SandboxTest, OnlyWhatChangedIsAskedForAgain) {
  ASSERT_EQ(write("a", "1").status, 200);
  ASSERT_EQ(write("b", "1").status, 200);
  execute("PYTHON");
  execute("PYTHON");
  EXPECT_THAT(python->asked_for, SizeIs(1)) << "nothing had changed";
  ASSERT_EQ(write("b", "2").status, 200);
  execute("PYTHON");
  EXPECT_THAT(python->asked_for.back(), ElementsAre("/workspace/b"));
  EXPECT_THAT(python->asked_for, SizeIs(2));
}

TEST_F(SandboxTest, AMirrorThatWasLostIsFilledAgain) {
  ASSERT_EQ(write("a", "1").status, 200);
  execute("PYTHON");
  python->interpreters.begin()->second.mirrors.clear();
  EXPECT_EQ(execute("PYTHON").status, 200);
  EXPECT_THAT(python->asked_for,
              ElementsAre(ElementsAre("/workspace/a"), ElementsAre("/workspace/a")));
}

TEST_F(SandboxTest, WhatTheInterpreterRefusesIsPassedOn) {
  const std::string id = create("PYTHON");
  python->refuse = Error{ErrorCode::kBadReply, "Sandbox did not provide 1 workspace file(s)", 0};
  EXPECT_EQ(execute("PYTHON").refusal(),
            "500 INTERNAL_ERROR Sandbox did not provide 1 workspace file(s)");
  EXPECT_THAT(context_ids(), ElementsAre(id));
}

TEST_F(SandboxTest, WhatARunWroteCanBeReadAndSurvives) {
  python->during_run = [](Workspace& files, protocol::ExecuteResponse&) {
    ASSERT_TRUE(files.write("made", "by the run", FileEncoding::kUtf8, 5'000'000'000).ok());
  };
  EXPECT_EQ(execute("PYTHON").status, 200);
  EXPECT_EQ(read("made"), "by the run");
  const Reply list = files({{"op", "list"}, {"path", "/workspace"}});
  EXPECT_EQ(list.text("/files/0/absolutePath"), "/workspace/made");
  EXPECT_EQ(list.text("/files/0/modifiedAt"), "1970-01-01T00:00:05.000Z");
  restart();
  EXPECT_EQ(read("made"), "by the run");
}

TEST_F(SandboxTest, AnErrorOfTheCodeKeepsTheFilesThatItsInterpreterKept) {
  python->during_run = fail_run;
  const Reply reply = execute("PYTHON");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.text("/error/message"), "oops");
  EXPECT_TRUE(reply.at("/results").as_array().empty());
  EXPECT_EQ(reply.number("/executionCount"), 1);
  EXPECT_EQ(read("by-the-run"), "x");
  restart();
  EXPECT_EQ(read("by-the-run"), "x");
}

TEST_F(SandboxTest, ARunSaysWhatBecomesOfItAfterAnError) {
  python->during_run = fail_run;
  const auto after_error = [&](json::object body) {
    body.emplace("binding", "PYTHON");
    body.emplace("code", "1");
    EXPECT_EQ(post("/execute", body).status, 200);
    return *python->runs.back().run.on_error;
  };
  using enum AfterError;
  EXPECT_EQ(after_error({}), kKeep);
  EXPECT_EQ(after_error({{"onError", "rollback"}}), kRollback);
  EXPECT_EQ(after_error({{"profile", "compat"}}), kFilesBack);
  EXPECT_EQ(after_error({{"profile", "compat"}, {"onError", "keep"}}), kKeep);
  options.profile = protocol::kCompatProfile;
  restart();
  EXPECT_EQ(after_error({}), kFilesBack);
  EXPECT_EQ(after_error({{"profile", "standard"}}), kKeep);
  EXPECT_EQ(after_error({{"onError", "rollback"}}), kRollback);
}

TEST_F(SandboxTest, FilesThatTheInterpreterPutBackAreAsTheyWere) {
  ASSERT_EQ(write("f", "before").status, 200);
  python->during_run = fail_run;
  EXPECT_EQ(
      post("/execute", {{"binding", "PYTHON"}, {"code", "1"}, {"onError", "rollback"}}).status,
      200);
  EXPECT_EQ(files({{"op", "list"}, {"path", "."}}).number("/count"), 1);
  EXPECT_EQ(read("f"), "before");
}

TEST_F(SandboxTest, AnAnswerHasWhatTheProtocolSays) {
  python->during_run = [](Workspace&, protocol::ExecuteResponse& response) {
    response.outcome.cwd = "/workspace/d";
    response.outcome.context->state = ContextState::kRestored;
    response.outcome.context->note = "why";
    response.outcome.context->snapshot_ms = 1.5;
    response.snapshot = protocol::SnapshotInfo{.build = "b", .pages = 2, .bytes = 8192};
  };
  const Reply reply = execute("PYTHON", "1 + 1");
  EXPECT_EQ(reply.text("/code"), "1 + 1");
  EXPECT_EQ(reply.text("/language"), "python");
  EXPECT_EQ(reply.text("/engine"), "Fake");
  EXPECT_EQ(reply.at("/logs"), json::value({{"stdout", {"ran"}}, {"stderr", json::array()}}));
  EXPECT_EQ(reply.at("/results"), json::value(json::array{{{"text", "1 + 1"}}}));
  EXPECT_EQ(reply.number("/executionCount"), 1);
  EXPECT_EQ(reply.text("/context/cwd"), "/workspace/d");
  EXPECT_EQ(reply.number("/context/executions"), 1);
  EXPECT_EQ(reply.text("/context/state"), "restored");
  EXPECT_EQ(reply.text("/context/note"), "why");
  EXPECT_EQ(reply.at("/context/snapshotMs").to_number<double>(), 1.5);
  EXPECT_EQ(reply.number("/context/expiresAt"), (kStart + kTtl).time_since_epoch().count());
  EXPECT_FALSE(reply.at("/context").as_object().contains("snapshot"));
  EXPECT_EQ(get("/").text("/contexts/0/snapshot/build"), "b");
  EXPECT_EQ(get("/").text("/contexts/0/cwd"), "/workspace/d");
}

TEST_F(SandboxTest, AContextThatTheInterpreterLostLeavesTheList) {
  const std::string id = create("PYTHON");
  python->interpreters.clear();
  EXPECT_EQ(execute("PYTHON").refusal(),
            "404 CONTEXT_NOT_FOUND Code context '" + id + "' not found");
  EXPECT_THAT(context_ids(), IsEmpty());
  restart();
  EXPECT_THAT(context_ids(), IsEmpty());
}

TEST_F(SandboxTest, ARunIsValidatedInOrder) {
  const auto refusal = [&](const json::value& body) { return post("/execute", body).refusal(); };
  EXPECT_EQ(refusal({{"cwd", "/workspace"}}),
            "400 VALIDATION_FAILED cwd is a context property; pass it to createCodeContext");
  EXPECT_EQ(refusal({{"code", "  "}, {"envVars", 1}}),
            "400 VALIDATION_FAILED Non-empty code is required");
  EXPECT_EQ(refusal({{"code", std::string(65537, 'x')}}),
            "413 VALIDATION_FAILED Code exceeds 64 KiB");
  EXPECT_EQ(refusal({{"code", "1"}, {"envVars", 1}, {"contextId", 1}}),
            "400 VALIDATION_FAILED envVars must be an object");
  EXPECT_EQ(refusal({{"code", "1"}, {"envVars", {{"1A", "x"}}}}),
            "400 VALIDATION_FAILED Invalid envVars key: 1A");
  EXPECT_EQ(refusal({{"code", "1"}, {"contextId", ""}}),
            "400 VALIDATION_FAILED contextId must be a non-empty string");
  EXPECT_EQ(refusal({{"code", "1"}, {"binding", 1}}),
            "400 VALIDATION_FAILED binding must be a non-empty string");
  EXPECT_EQ(refusal({{"code", "1"}, {"onError", "undo"}}),
            "400 VALIDATION_FAILED onError must be 'keep' or 'rollback'");
  EXPECT_EQ(refusal({{"code", "1"}, {"onError", nullptr}}),
            "400 VALIDATION_FAILED onError must be 'keep' or 'rollback'");
  EXPECT_EQ(refusal({{"code", "1"}, {"profile", 1}}),
            "400 VALIDATION_FAILED profile must be 'standard' or 'compat'");
  EXPECT_EQ(refusal({{"code", "1"}}), "400 VALIDATION_FAILED Pass a context or a binding");
  EXPECT_EQ(refusal({{"code", "1"}, {"contextId", "nope"}}),
            "404 CONTEXT_NOT_FOUND Code context 'nope' not found");
  EXPECT_EQ(refusal({{"code", "1"}, {"binding", "NOPE"}}),
            "400 VALIDATION_FAILED Unknown binding 'NOPE'");
}

TEST_F(SandboxTest, AContextWinsOverABinding) {
  const std::string id = create("PYTHON");
  const Reply reply = post("/execute", {{"contextId", id}, {"binding", "NOPE"}, {"code", "1"}});
  EXPECT_EQ(reply.text("/context/id"), id);
}

TEST_F(SandboxTest, AWorkerThatCannotBeReachedIs502) {
  create("PYTHON");
  python->unreachable = Error{ErrorCode::kUnreachable, "connection lost", 0};
  EXPECT_EQ(execute("PYTHON").refusal(),
            "502 INTERNAL_ERROR Binding 'PYTHON' failed: connection lost");
}

TEST_F(SandboxTest, ADiffWithPathsThatCannotBeChangesNothing) {
  ASSERT_EQ(write("f", "before").status, 200);
  create("PYTHON");
  python->during_run = [](Workspace& files, protocol::ExecuteResponse&) {
    ASSERT_TRUE(files.write("f", "after", FileEncoding::kUtf8, 0).ok());
  };
  python->after_run = [](protocol::ExecuteResponse& response) {
    response.outcome.files->files.push_back({.path = "/etc/passwd", .data = {}});
  };
  EXPECT_THAT(execute("PYTHON").refusal(),
              HasSubstr("500 INTERNAL_ERROR the Interpreter returned an invalid workspace"));
  EXPECT_EQ(read("f"), "before");
}

TEST_F(SandboxTest, EnvironmentsAreLaidOverOneAnother) {
  ASSERT_EQ(
      post("/env", {{"envVars", {{"A", "sandbox-a"}, {"B", "sandbox-b"}, {"C", "sandbox-c"}}}})
          .status,
      200);
  const std::string id =
      post("/contexts", {{"binding", "PYTHON"}, {"envVars", {{"B", "context-b"}}}}).text("/id");
  const auto env_of = [&](const json::value& call) {
    post("/execute", {{"contextId", id}, {"code", "1"}, {"envVars", call}});
    return python->runs.back().run.env;
  };
  EXPECT_THAT(env_of({{"C", nullptr}, {"D", "call-d"}}),
              ElementsAre(Pair("A", "sandbox-a"), Pair("B", "context-b"), Pair("D", "call-d")));
  ASSERT_EQ(post("/env", {{"envVars", {{"A", nullptr}}}}).status, 200);
  EXPECT_THAT(env_of(json::object()), ElementsAre(Pair("B", "context-b"), Pair("C", "sandbox-c")));
  restart();
  EXPECT_EQ(get("/").at("/envVars"), json::value({{"B", "sandbox-b"}, {"C", "sandbox-c"}}));
  EXPECT_EQ(post("/env", json::object()).refusal(), "400 VALIDATION_FAILED envVars is required");
}

// --- what a crash between two commits leaves

TEST_F(SandboxTest, TheInterpreterIsToldWhichRunIsTheLastThatIsKnown) {
  create("PYTHON");
  execute("PYTHON");
  EXPECT_EQ(python->runs.back().executions_known, 0u);
  execute("PYTHON");
  EXPECT_EQ(python->runs.back().executions_known, 1u);
  // The Interpreter has stored a run; we have not, because the storage failed.
  disk.fail_commits(Error{ErrorCode::kUnavailable, "disk full", 0});
  python->during_run = [](Workspace& files, protocol::ExecuteResponse&) {
    ASSERT_TRUE(files.write("lost", "x", FileEncoding::kUtf8, 0).ok());
  };
  EXPECT_THAT(execute("PYTHON").refusal(),
              AllOf(StartsWith("503 INTERNAL_ERROR"), HasSubstr("disk full")));
  disk.fail_commits(std::nullopt);
  python->during_run = nullptr;
  EXPECT_EQ(read("lost"), "FILE_NOT_FOUND");
  EXPECT_EQ(execute("PYTHON").number("/executionCount"), 3);
  EXPECT_EQ(python->runs.back().executions_known, 2u) << "so that it takes back the third";
}

TEST_F(SandboxTest, FilesAndCountsAreStoredTogether) {
  python->during_run = [](Workspace& files, protocol::ExecuteResponse& response) {
    ASSERT_TRUE(files.write("n", response.outcome.cwd, FileEncoding::kUtf8, 0).ok());
  };
  execute("PYTHON");
  const auto state = [&] {
    return std::pair(rows(0x20), get("/").number("/contexts/0/executions"));
  };
  EXPECT_EQ(state(), std::pair(std::size_t{1}, std::int64_t{1}));
  disk.fail_commits(Error{ErrorCode::kUnavailable, "disk full", 0});
  python->during_run = [](Workspace& files, protocol::ExecuteResponse&) {
    ASSERT_TRUE(files.write("m", "x", FileEncoding::kUtf8, 0).ok());
  };
  execute("PYTHON");
  disk.fail_commits(std::nullopt);
  EXPECT_EQ(state(), std::pair(std::size_t{1}, std::int64_t{1}));
}

}  // namespace
}  // namespace sw::sandbox
