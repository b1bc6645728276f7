// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Two runs that began with the same files.

#include <gtest/gtest.h>

#include "sandbox_workers/workspace/workspace.h"
#include "wasi/tree_state.h"
#include "workspace/test_copy.h"

namespace sw {
namespace {

/// The files after two runs that began with what `before` makes.
std::string after_both(const std::string& before, const std::string& first,
                       const std::string& second) {
  Copy files;
  act(files, before);
  const wasi::TreeState began = files.workspace.remember();
  const auto changes_of = [&](const std::string& script) {
    Copy mirror;
    EXPECT_TRUE(mirror.workspace.apply_diff(workspace_diff({}, began), kNow).ok());
    const wasi::TreeState mirror_began = mirror.workspace.remember();
    act(mirror, script);
    return mirror.workspace.changes_since(mirror_began);
  };
  const WorkspaceDiff diffs[] = {changes_of(first), changes_of(second)};
  for (const WorkspaceDiff& diff : diffs) {
    EXPECT_TRUE(files.workspace.apply_diff(diff, kNow).ok());
  }
  return text_of(files);
}

TEST(TwoRuns, ChangesOfDifferentPathsAreAllThere) {
  EXPECT_EQ(after_both("write f 0", "write a 1", "write b 2"), "a=1 b=2 f=0");
  EXPECT_EQ(after_both("write f 0; write g 0", "write f 1", "write g 2"), "f=1 g=2");
  EXPECT_EQ(after_both("write f 0; write g 0", "remove f", "write g 2"), "g=2");
  EXPECT_EQ(after_both("folder d; write d/f 0", "write d/a 1", "write d/b 2"),
            "d/ d/a=1 d/b=2 d/f=0");
  EXPECT_EQ(after_both("", "folder d; write d/a 1", "folder d; write d/b 2"), "d/ d/a=1 d/b=2");
  EXPECT_EQ(after_both("link l f", "remove l", "write g 2"), "g=2");
  EXPECT_EQ(after_both("folder d", "remove d", "write g 2"), "g=2");
}

TEST(TwoRuns, OfOnePathTheLaterIsTaken) {
  EXPECT_EQ(after_both("write f 0", "write f 1", "write f 2"), "f=2");
  EXPECT_EQ(after_both("write f 0", "write f 1", "remove f"), "");
  EXPECT_EQ(after_both("write f 0", "remove f", "write f 2"), "f=2");
  EXPECT_EQ(after_both("write f 0", "remove f", "remove f"), "");
  EXPECT_EQ(after_both("", "link l a", "link l b"), "l->b");
  EXPECT_EQ(after_both("link l a", "remove l; link l b", "remove l"), "");
  EXPECT_EQ(after_both("link l a", "remove l", "remove l; link l c"), "l->c");
}

TEST(TwoRuns, AFileAndAFolderOfOneNameAreTheLaterOne) {
  EXPECT_EQ(after_both("", "write x 1", "folder x; write x/y 2"), "x/ x/y=2");
  EXPECT_EQ(after_both("", "folder x; write x/y 1", "write x 2"), "x=2");
  EXPECT_EQ(after_both("write x 0", "write x 1", "remove x; folder x; write x/y 2"), "x/ x/y=2");
  EXPECT_EQ(after_both("folder x; write x/y 0", "write x/z 1", "remove x; write x 2"), "x=2");
  EXPECT_EQ(after_both("folder x", "remove x; write x 1", "write x/y 2"), "x/ x/y=2");
}

TEST(TwoRuns, ALinkAndAnythingElseOfOneNameAreTheLaterOne) {
  EXPECT_EQ(after_both("", "write x 1", "link x a"), "x->a");
  EXPECT_EQ(after_both("", "link x a", "write x 2"), "x=2");
  EXPECT_EQ(after_both("", "folder x; write x/y 1", "link x a"), "x->a");
  EXPECT_EQ(after_both("", "link x a", "folder x; write x/y 2"), "x/ x/y=2");
  EXPECT_EQ(after_both("link x a", "remove x; write x 1", "remove x"), "");
}

TEST(TwoRuns, NothingIsWrittenThroughALinkThatTheOtherMade) {
  EXPECT_EQ(after_both("folder a; folder d", "remove d; link d a", "write d/f 2"), "a/ d/ d/f=2");
  EXPECT_EQ(after_both("write a 0; write f 0", "remove f; link f a", "write f 2"), "a=0 f=2");
  EXPECT_EQ(after_both("folder a; write a/f 0; folder d; write d/f 0", "remove d; link d a",
                       "remove d/f"),
            "a/ a/f=0 d->a");
}

TEST(TwoRuns, AFolderThatOneRemovedStaysWithWhatTheOtherPutIntoIt) {
  EXPECT_EQ(after_both("folder d; write d/f 0", "write d/g 1", "remove d"), "d/ d/g=1");
  EXPECT_EQ(after_both("folder d; write d/f 0", "remove d", "write d/g 2"), "d/ d/g=2");
  EXPECT_EQ(after_both("folder d/e; write d/e/f 0", "write d/g 1", "remove d"), "d/ d/g=1");
  EXPECT_EQ(after_both("write x 0", "remove x; folder x; write x/y 1", "remove x"), "x/ x/y=1");
  EXPECT_EQ(after_both("write x 0", "remove x; folder x", "remove x"), "");
}

}  // namespace
}  // namespace sw
