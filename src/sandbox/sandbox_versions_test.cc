// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Files that go back with a context's memory. These Workers are as if they were elsewhere: they store
// first, and the sandbox afterwards. src/host has the same in one commit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <future>

#include "sandbox/sandbox_fixture.h"

namespace sw::sandbox {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;

struct SandboxVersionsTest : SandboxTest {
  Reply run(const char* context, const char* code) {
    return post("/execute", {{"contextId", context}, {"code", code}});
  }
  Reply change(const std::string& what, const json::object& body, const char* context = "c") {
    return post(fmt::format("/contexts/{}/{}", context, what), body);
  }
  void SetUp() override {
    for (const char* context : {"c", "d"}) {
      ASSERT_EQ(post("/contexts", {{"binding", "PYTHON"}, {"id", context}}).status, 201);
    }
    ASSERT_EQ(run("c", "write a one\nwrite b same").status, 200);  // step 1
    ASSERT_EQ(run("c", "write a two").status, 200);                // step 2
    ASSERT_EQ(run("d", "write e other").status, 200);
  }
};

TEST_F(SandboxVersionsTest, UndoSaysWhichFilesDifferAndLeavesThem) {
  const Reply undone = change("undo", {{"runs", 1}});
  EXPECT_EQ(
      undone.body,
      (json::value{
          {"success", true}, {"step", 1}, {"filesDiffer", {"a", "e"}}, {"filesDifferCount", 2}}));
  EXPECT_EQ(read("a"), "two");
  EXPECT_EQ(read("e"), "other");
}

TEST_F(SandboxVersionsTest, UndoTakesTheFilesAlongAndThatCanBeUndone) {
  const Reply undone = change("undo", {{"files", true}});
  EXPECT_EQ(undone.body, (json::value{{"success", true}, {"step", 1}, {"filesRestored", 2}}));
  EXPECT_EQ(read("a"), "one");
  EXPECT_EQ(read("b"), "same");
  EXPECT_EQ(read("e"), "FILE_NOT_FOUND");
  restart();
  EXPECT_EQ(read("a"), "one");
  EXPECT_EQ(change("undo", {{"runs", 0}, {"files", true}}).status, 400);
  EXPECT_EQ(change("restore", {{"step", 2}, {"files", true}}).number("/filesRestored"), 1);
  EXPECT_EQ(read("a"), "two");
  EXPECT_EQ(read("e"), "FILE_NOT_FOUND") << "it was not there yet when step 2 ended";
  EXPECT_EQ(change("restore", {{"step", 1}, {"files", true}}, "d").number("/filesRestored"), 1);
  EXPECT_EQ(read("e"), "other");
}

TEST_F(SandboxVersionsTest, WhatEqualsWhatWasThereDoesNotDiffer) {
  ASSERT_EQ(run("c", "write a one\nremove e").status, 200);
  EXPECT_EQ(change("restore", {{"step", 1}}).number("/filesDifferCount"), 0);
  EXPECT_EQ(change("restore", {{"step", 1}, {"files", true}}).number("/filesRestored"), 0);
}

TEST_F(SandboxVersionsTest, AForkMayTakeThemAlongAndHasTheStepsUpToThere) {
  const Reply plain = change("fork", {{"id", "one"}, {"step", 1}});
  EXPECT_EQ(plain.status, 201);
  EXPECT_EQ(plain.number("/filesDifferCount"), 2);
  const Reply fork = change("fork", {{"id", "two"}, {"step", 1}, {"files", true}});
  EXPECT_EQ(fork.number("/filesRestored"), 2);
  EXPECT_EQ(read("a"), "one");
  ASSERT_EQ(run("two", "write a branch").status, 200);
  restart();
  EXPECT_EQ(change("undo", {{"files", true}}, "two").status, 200);
  EXPECT_EQ(read("a"), "one");
}

TEST_F(SandboxVersionsTest, RunsInProgressGoOnAndWinPathByPath) {
  Gate gate;
  python->before_run = [&](const sw::Run& run) {
    if (run.code.starts_with("write late")) gate.pass("late");
  };
  RunOutput output;
  std::promise<Result<Finished>> promise;
  sandbox().start({.code = "write late text\nwrite a late", .context = "d"}, {}, output,
                  [&](Result<Finished> finished) { promise.set_value(std::move(finished)); });
  gate.wait_for("late");
  ASSERT_EQ(change("undo", {{"files", true}}).status, 200);
  EXPECT_EQ(read("a"), "one");
  gate.open();
  ASSERT_TRUE(promise.get_future().get().ok());
  EXPECT_EQ(read("a"), "late");
  EXPECT_EQ(read("b"), "same");
  EXPECT_EQ(read("late"), "text");
  EXPECT_EQ(read("e"), "FILE_NOT_FOUND");
}

TEST_F(SandboxVersionsTest, WhatIsNotKeptAnyMoreIsSaid) {
  options.file_history.changes_max = 2;
  restart();
  for (const char* text : {"3", "4", "5"}) ASSERT_EQ(write("a", text).status, 200);
  ASSERT_EQ(run("c", "1").status, 200);  // step 3
  const Reply undone = change("restore", {{"step", 2}, {"files", true}});
  EXPECT_THAT(undone.refusal(), HasSubstr("the memory has gone back, but not the files: "
                                          "Code context 'c': how the files were after step 2 is "
                                          "not kept; that is kept from step 3 on"));
  EXPECT_EQ(read("a"), "5");
  EXPECT_FALSE(change("restore", {{"step", 2}}).body.as_object().contains("filesDiffer"));
  EXPECT_EQ(change("restore", {{"step", 3}}).number("/filesDifferCount"), 0);
}

TEST_F(SandboxVersionsTest, AContextThatIsMadeAnewHasNoSteps) {
  ASSERT_EQ(remove("/contexts/c").status, 200);
  ASSERT_EQ(post("/contexts", {{"binding", "PYTHON"}, {"id", "c"}}).status, 201);
  python->interpreters.begin()->second.steps["c"] = 1;
  EXPECT_THAT(change("restore", {{"step", 1}, {"files", true}}).refusal(),
              HasSubstr("kept of none of its steps"));
  EXPECT_EQ(rows(0x23), 1U) << "that of the other context";
}

TEST_F(SandboxVersionsTest, AWorkerThatDoesNotSayWhichStepItIsKnowsNothingOfFiles) {
  python->interpreters.begin()->second.steps.clear();
  const Reply undone = change("undo", json::object());
  EXPECT_EQ(undone.body, (json::value{{"success", true}}));
  EXPECT_THAT(change("undo", {{"files", true}}).refusal(), HasSubstr("it is not known which step"));
}

TEST_F(SandboxVersionsTest, FilesMustBeTrueOrFalseAndThere) {
  for (const char* what : {"undo", "fork"})
    EXPECT_EQ(change(what, {{"files", 1}}).refusal(),
              "400 VALIDATION_FAILED files must be true or false");
  EXPECT_EQ(change("restore", {{"step", 1}, {"files", "yes"}}).status, 400);
  options.file_api = false;
  restart();
  EXPECT_EQ(change("undo", json::object()).body, (json::value{{"success", true}, {"step", 1}}));
  EXPECT_THAT(change("restore", {{"step", 1}, {"files", true}}).refusal(),
              HasSubstr("403 NOT_SUPPORTED"));
}

TEST_F(SandboxVersionsTest, AfterAFailureOfTheStorageFilesAreAsTheyWere) {
  disk.fail_commits(Error{ErrorCode::kUnavailable, "disk full", 0});
  EXPECT_THAT(change("undo", {{"files", true}}).refusal(), HasSubstr("disk full"));
  disk.fail_commits(std::nullopt);
  EXPECT_EQ(read("a"), "two");
  EXPECT_EQ(change("restore", {{"step", 1}, {"files", true}}).number("/filesRestored"), 2)
      << "the other half can be made up for";
}

}  // namespace
}  // namespace sw::sandbox
