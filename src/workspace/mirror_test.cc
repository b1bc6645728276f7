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
  Result<void> follow() { return mirror_.follow(*sandbox_.for_run(), 1); }
  /// As from a sandbox in another process.
  Result<void> follow_manifest(WorkspaceManifest manifest) {
    asked_.clear();
    const GetFiles get_files = [&](const std::vector<std::string>& paths) {
      asked_ = paths;
      return workspace_files(sandbox_.remember(), paths);
    };
    return mirror_.follow({.manifest = std::move(manifest), .get_files = get_files}, 1);
  }
  Result<void> follow_manifest() { return follow_manifest(manifest_of(sandbox_.remember())); }
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
  EXPECT_TRUE(mirror_.changes().empty());
  write(mirror_.files(), "a", "changed");
  const WorkspaceDiff changes = mirror_.changes();
  ASSERT_EQ(changes.files.size(), 1U);
  EXPECT_EQ(changes.files[0].path, "/workspace/a");
  ASSERT_TRUE(sandbox_.apply_diff(changes, 1).ok());
  ASSERT_TRUE(follow().ok());
  EXPECT_TRUE(mirror_.changes().empty());
}

TEST_F(MirrorTest, FollowsAManifestAndAsksForWhatItLacks) {
  write(sandbox_, "a", "1");
  write(sandbox_, "b", "2");
  ASSERT_TRUE(follow_manifest().ok());
  EXPECT_THAT(asked_, ElementsAre("/workspace/a", "/workspace/b"));
  write(mirror_.files(), "a", "changed");
  ASSERT_TRUE(sandbox_.apply_diff(mirror_.changes(), 1).ok());
  ASSERT_TRUE(follow_manifest().ok());
  EXPECT_THAT(asked_, IsEmpty()) << "it has all of it";
  EXPECT_TRUE(mirror_.changes().empty());
}

TEST_F(MirrorTest, FollowsStatesAndManifestsInTurn) {
  write(sandbox_, "a", "1");
  ASSERT_TRUE(follow().ok());
  write(sandbox_, "a", "2");
  ASSERT_TRUE(follow_manifest().ok());
  EXPECT_EQ(read(mirror_.files(), "a"), "2");
  write(sandbox_, "a", "1");
  ASSERT_TRUE(follow().ok());
  EXPECT_EQ(read(mirror_.files(), "a"), "1");
}

TEST_F(MirrorTest, FollowsASandboxThatWasLoadedAgain) {
  write(sandbox_, "same", "1");
  write(sandbox_, "gone", "1");
  ASSERT_TRUE(follow().ok());
  wasi::Node* const node = mirror_.tree()->root().directory->find("same").value()->node.get();
  Workspace loaded(kWorkspaceLimits, 1);
  write(loaded, "same", "1");
  write(loaded, "new", "1");
  ASSERT_TRUE(mirror_.follow(*loaded.for_run(), 1).ok());
  EXPECT_EQ(read(mirror_.files(), "new"), "1");
  EXPECT_FALSE(mirror_.files().exists("gone"));
  EXPECT_EQ(mirror_.tree()->root().directory->find("same").value()->node.get(), node);
}

TEST_F(MirrorTest, TakesOverATimeThatAloneChanged) {
  write(sandbox_, "a", "1");
  ASSERT_TRUE(follow().ok());
  ASSERT_TRUE(sandbox_.write("a", "1", FileEncoding::kUtf8, 7'000'000).ok());
  ASSERT_TRUE(follow().ok());
  EXPECT_EQ(mirror_.files().stat("a")->updated_at_ms, 7);
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
  const WorkspaceManifest manifest{.files = {{"/workspace/a", ""}}};
  ASSERT_TRUE(follow_manifest(manifest).ok());
  EXPECT_EQ(read(mirror_.files(), "a"), "1");
  ASSERT_TRUE(follow_manifest(manifest).ok());
  EXPECT_THAT(asked_, ElementsAre("/workspace/a"));
}

TEST_F(MirrorTest, TakesOverLimitsAndTheFlag) {
  const Workspace small({.file_bytes_max = 1}, 1);
  ASSERT_TRUE(mirror_.follow(*small.for_run(), 1).ok());
  EXPECT_FALSE(mirror_.files().write("a", "12", FileEncoding::kUtf8, 1).ok());
  write(sandbox_, "a", "12");
  sandbox_.set_disabled(true);
  ASSERT_TRUE(follow().ok());
  EXPECT_TRUE(mirror_.files().disabled());
  sandbox_.set_disabled(false);
  ASSERT_TRUE(follow().ok());
  EXPECT_EQ(read(mirror_.files(), "a"), "12");
}

TEST_F(MirrorTest, FilesThatAreNotGivenAreAnError) {
  write(sandbox_, "a", "1");
  const WorkspaceManifest manifest = manifest_of(sandbox_.remember());
  const auto follow_with = [&](const GetFiles& get_files) {
    const auto followed = mirror_.follow({.manifest = manifest, .get_files = get_files}, 1);
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
  EXPECT_EQ(follow_manifest({.dirs = {"/workspace/../outside"}}).error().code,
            ErrorCode::kInvalidArgument);
  ASSERT_TRUE(follow().ok());
  EXPECT_EQ(read(mirror_.files(), "a"), "1");
}

}  // namespace
}  // namespace sw
