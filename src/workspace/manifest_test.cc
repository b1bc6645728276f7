// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/workspace/manifest.h"

#include <gtest/gtest.h>

#include "sandbox_workers/workspace/workspace.h"

namespace sw {
namespace {

const WorkspaceManifest kBefore{.dirs = {"/workspace/d", "/workspace/d/e", "/workspace/gone"},
                                .links = {{"/workspace/relative", "d"},
                                          {"/workspace/d/up", ".."},
                                          {"/workspace/absolute", "/workspace/d/e"},
                                          {"/workspace/out", "/etc"},
                                          {"/workspace/gone-link", "d"},
                                          {"/workspace/other-link", "d"},
                                          {"/workspace/round", "round"}}};
const WorkspaceDiff kDiff{.dirs = {"/workspace/new"},
                          .files = {{.path = "/workspace/gone"}},
                          .links = {{"/workspace/other-link", "new"}, {"/workspace/link", "d/e"}},
                          .removed = {"/workspace/gone-link"}};

void expect_folders(const RunFiles& files) {
  for (const char* path :
       {"/workspace", "/workspace/d", "/workspace/d/e", "/workspace/relative",
        "/workspace/relative/e", "/workspace/absolute", "/workspace/d/up/d/up/relative",
        "/workspace/new", "/workspace/other-link", "/workspace/link"}) {
    EXPECT_TRUE(is_folder(files, kDiff, path)) << path;
  }
  for (const char* path : {"/workspace/x", "/workspace/d/x", "/workspace/relative/x",
                           "/workspace/out", "/workspace/round", "/workspace2", "/", "",
                           "/workspace/gone", "/workspace/gone-link", "/workspace/other-link/e"}) {
    EXPECT_FALSE(is_folder(files, kDiff, path)) << path;
  }
}

TEST(Manifest, KnowsFoldersAfterARunAlsoBehindLinks) { expect_folders({.manifest = kBefore}); }

TEST(Manifest, KnowsFoldersByAStateToo) {
  Workspace files({}, 1);
  ASSERT_TRUE(files.apply_diff({.dirs = kBefore.dirs, .links = kBefore.links}, 1).ok());
  expect_folders(*files.for_run());
}

}  // namespace
}  // namespace sw
