// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Runs of which the storage or the interpreter makes nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "sandbox/sandbox_runs_fixture.h"

namespace sw::sandbox {
namespace {

using ::testing::IsEmpty;

// --- storage that fails

TEST_F(SandboxRunsTest, ARunThatCannotBeStoredHasNotHappened) {
  make("a");
  ASSERT_TRUE(run("a", "write f 1").ok());
  Future held = hold("a", "hold a", "write f 2\nwrite g 2");
  disk.fail_commits(kDiskFull);
  EXPECT_FALSE(sandbox().set_env({{"A", "1"}}).ok());
  gate.open();
  EXPECT_EQ(code_of(held), ErrorCode::kUnavailable);
  disk.fail_commits(std::nullopt);
  EXPECT_EQ(read("f"), "1");
  EXPECT_EQ(read("g"), "file not found");
  EXPECT_EQ(sandbox().context("a")->executions, 1u);
  EXPECT_THAT(sandbox().info()->record.env, IsEmpty());
  ASSERT_TRUE(run("a", "3").ok());
  EXPECT_EQ(python->runs.back().executions_known, 1u) << "so that the lost run is taken back";
}

TEST_F(SandboxRunsTest, AFailureOfTheStorageInTheMiddleOfARunIsNoneOfTheRuns) {
  make("a");
  write("f", "0");
  Future held = hold("a", "hold a", "write g 2");
  disk.fail_commits(kDiskFull);
  EXPECT_FALSE(sandbox().set_env({{"A", "1"}}).ok());
  disk.fail_commits(std::nullopt);
  write("h", "3");
  gate.open();
  EXPECT_EQ(held.get()->outcome.context->executions, 1u);
  restart();
  EXPECT_EQ(read("f") + read("g") + read("h"), "023");
}

TEST_F(SandboxRunsTest, WhatAFailedChangeOfTheFilesDidIsStoredOrNotThere) {
  parts.options.files.entries_max = 2;
  const auto made = sandbox().with_files(FileUse::kChange, "directory.create", "a/b/c",
                                         [](Workspace& files, std::uint64_t now) {
                                           return files.make_directory("a/b/c", Depth::kAll, now);
                                         });
  EXPECT_FALSE(made.ok());
  const auto count = [&] { return sandbox().info()->files; };
  const std::uint64_t before = count();
  restart();
  EXPECT_EQ(count(), before);
}

// --- Interpreters that answer nonsense

TEST_F(SandboxRunsTest, AnAnswerThatSaysNothingOfTheContextIsRefused) {
  make("a");
  python->after_run = [](protocol::ExecuteResponse& response) { response.outcome.context.reset(); };
  const auto finished = run("a", "write f 1");
  ASSERT_FALSE(finished.ok());
  EXPECT_EQ(finished.error().code, ErrorCode::kBadReply);
  EXPECT_EQ(read("f"), "file not found");
  EXPECT_EQ(sandbox().context("a")->executions, 0u);
}

TEST_F(SandboxRunsTest, AnAnswerFromOutsideOfTheWorkspaceIsRefused) {
  make("a");
  for (const char* cwd : {"/etc", "", "/workspace/../x"}) {
    python->after_run = [&](protocol::ExecuteResponse& response) { response.outcome.cwd = cwd; };
    const auto finished = run("a", "write f 1");
    ASSERT_FALSE(finished.ok()) << cwd;
    EXPECT_EQ(finished.error().code, ErrorCode::kBadReply) << cwd;
  }
  EXPECT_EQ(sandbox().context("a")->cwd, "/workspace");
  EXPECT_EQ(read("f"), "file not found");
}

TEST_F(SandboxRunsTest, FilesThatCannotBeChangeNothing) {
  make("a");
  write("f", "0");
  const auto spoiled = [&](std::function<void(WorkspaceDiff&)> spoil) {
    python->after_run = [spoil = std::move(spoil)](protocol::ExecuteResponse& response) {
      spoil(*response.outcome.files);
    };
    const auto finished = run("a", "write f 1");
    return finished.ok() ? std::string("taken") : std::string(code_name(finished.error().code));
  };
  for (const char* path : {"/etc/passwd", "/workspace/../x", "f", ""}) {
    EXPECT_NE(
        spoiled([&](WorkspaceDiff& diff) { diff.files.push_back({.path = path, .data = {}}); }),
        "taken")
        << path;
    EXPECT_NE(spoiled([&](WorkspaceDiff& diff) { diff.links.emplace(path, "f"); }), "taken")
        << path;
  }
  python->after_run = nullptr;
  EXPECT_EQ(read("f"), "0");
  restart();
  EXPECT_EQ(read("f"), "0");
}

TEST_F(SandboxRunsTest, AContextIsCountedHereWhateverItsInterpreterSays) {
  make("a");
  python->after_run = [](protocol::ExecuteResponse& response) {
    response.outcome.context->id = "other";
    response.outcome.context->executions = 77;
  };
  const auto finished = run("a", "1");
  EXPECT_EQ(finished->outcome.context->id, "a");
  EXPECT_EQ(finished->outcome.context->executions, 1u);
  ASSERT_TRUE(run("a", "1").ok());
  EXPECT_EQ(python->runs.back().executions_known, 77u) << "it is told its own count";
}

}  // namespace
}  // namespace sw::sandbox
