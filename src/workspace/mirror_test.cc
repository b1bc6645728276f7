// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/workspace/mirror.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wasi/tree_state.h"

namespace sw {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class MirrorTest : public ::testing::Test {
 protected:
  Result<void> follow(Hashes hashes = Hashes::kWith) {
    const auto files = sandbox_.for_run(hashes);
    return mirror_.follow(
        files->manifest,
        [&](const std::vector<std::string>& paths) {
          asked_ = paths;
          return files->get_files(paths);
        },
        1);
  }
  void write(Workspace& files, std::string_view path, std::string_view text) {
    ASSERT_TRUE(files.write(path, text, FileEncoding::kUtf8, 1).ok());
  }
  std::string read(Workspace& files, std::string_view path) {
    const auto text = files.read(path, FileEncoding::kUtf8);
    return text.ok() ? text->content : text.error().message;
  }

  Workspace sandbox_{kWorkspaceLimits, 1};
  Mirror mirror_{1};
  std::vector<std::string> asked_;
};

TEST_F(MirrorTest, FollowsAndTellsWhatChanged) {
  write(sandbox_, "a", "1");
  write(sandbox_, "b", "2");
  ASSERT_TRUE(follow().ok());
  EXPECT_THAT(asked_, ElementsAre("/workspace/a", "/workspace/b"));
  write(mirror_.files(), "a", "changed");
  const WorkspaceDiff changes = mirror_.changes();
  ASSERT_EQ(changes.files.size(), 1U);
  EXPECT_EQ(changes.files[0].path, "/workspace/a");
  ASSERT_TRUE(sandbox_.apply_diff(changes, sandbox_.remember(), 1).ok());
  asked_.clear();
  ASSERT_TRUE(follow().ok());
  EXPECT_THAT(asked_, IsEmpty()) << "it has all of it";
  EXPECT_THAT(mirror_.changes().files, IsEmpty());
}

TEST_F(MirrorTest, TakesBackWhatTheSandboxDidNotTakeOver) {
  write(sandbox_, "a", "1");
  ASSERT_TRUE(follow().ok());
  write(mirror_.files(), "a", "lost");
  write(mirror_.files(), "new", "lost");
  ASSERT_TRUE(follow().ok());
  EXPECT_EQ(read(mirror_.files(), "a"), "1");
  EXPECT_FALSE(mirror_.files().exists("new"));
}

TEST_F(MirrorTest, FetchesEverythingOfAManifestWithoutHashes) {
  write(sandbox_, "a", "1");
  ASSERT_TRUE(follow(Hashes::kWithout).ok());
  EXPECT_EQ(read(mirror_.files(), "a"), "1");
  asked_.clear();
  ASSERT_TRUE(follow(Hashes::kWithout).ok());
  EXPECT_THAT(asked_, ElementsAre("/workspace/a"));
}

TEST_F(MirrorTest, TakesOverLimits) {
  const Workspace small({.file_bytes_max = 1}, 1);
  const auto files = Workspace(small).for_run();
  ASSERT_TRUE(mirror_.follow(files->manifest, files->get_files, 1).ok());
  EXPECT_FALSE(mirror_.files().write("a", "12", FileEncoding::kUtf8, 1).ok());
}

TEST_F(MirrorTest, FilesThatAreNotGivenAreAnError) {
  write(sandbox_, "a", "1");
  const WorkspaceManifest manifest = sandbox_.manifest();
  const auto follow_with = [&](const GetFiles& get_files) {
    const auto followed = mirror_.follow(manifest, get_files, 1);
    return followed.ok() ? Error{} : followed.error();
  };
  const auto nothing = [](const auto&) { return std::vector<WorkspaceFile>(); };
  EXPECT_EQ(follow_with(nothing).code, ErrorCode::kBadReply);
  const auto another = [](const auto&) {
    return std::vector<WorkspaceFile>{{.path = "/workspace/a", .data = {}}};
  };
  EXPECT_EQ(follow_with(another).code, ErrorCode::kBadReply) << "it has another hash";
  const auto failing = [](const auto&) { return Error{ErrorCode::kUnreachable, "gone", 0}; };
  EXPECT_EQ(follow_with(failing).code, ErrorCode::kBadReply);
  EXPECT_EQ(follow_with({}).code, ErrorCode::kBadReply);
  const WorkspaceManifest outside{.dirs = {"/workspace/../outside"}};
  EXPECT_EQ(mirror_.follow(outside, nothing, 1).error().code, ErrorCode::kInvalidArgument);
  ASSERT_TRUE(follow().ok());
  EXPECT_EQ(read(mirror_.files(), "a"), "1");
}

}  // namespace
}  // namespace sw
