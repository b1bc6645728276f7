// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/workspace/manifest.h"

#include <gtest/gtest.h>

namespace sw {
namespace {

TEST(Manifest, NoDifferenceKeepsFoldersAndLinks) {
  const WorkspaceManifest manifest{
      .dirs = {"/workspace/d"}, .files = {{"/workspace/a", "1"}}, .links = {{"/workspace/l", "d"}}};
  const WorkspaceDiff difference = no_difference(manifest);
  EXPECT_EQ(difference.dirs, manifest.dirs);
  EXPECT_EQ(difference.links, manifest.links);
  EXPECT_TRUE(difference.files.empty());
  EXPECT_TRUE(difference.deleted.empty());
}

TEST(Manifest, KnowsFoldersAlsoBehindLinks) {
  const WorkspaceDiff after{.dirs = {"/workspace/d", "/workspace/d/e"},
                            .links = {{"/workspace/relative", "d"},
                                      {"/workspace/d/up", ".."},
                                      {"/workspace/absolute", "/workspace/d/e"},
                                      {"/workspace/out", "/etc"},
                                      {"/workspace/round", "round"}}};
  for (const char* path :
       {"/workspace", "/workspace/d", "/workspace/d/e", "/workspace/relative",
        "/workspace/relative/e", "/workspace/absolute", "/workspace/d/up/d/up/relative"}) {
    EXPECT_TRUE(is_folder(after, path)) << path;
  }
  for (const char* path : {"/workspace/x", "/workspace/d/x", "/workspace/relative/x",
                           "/workspace/out", "/workspace/round", "/workspace2", "/", ""}) {
    EXPECT_FALSE(is_folder(after, path)) << path;
  }
}

}  // namespace
}  // namespace sw
