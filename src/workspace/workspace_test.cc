// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/workspace/workspace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sandbox_workers/wasi/file_system.h"
#include "wasi/tree_state.h"

namespace sw {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using wasi::FileType;

constexpr std::uint64_t kNow = 1'700'000'000'123'000'000;
constexpr std::int64_t kNowMs = 1'700'000'000'123;

template <class T>
std::string errno_of(const Result<T>& outcome) {
  return outcome.ok() ? "ok" : outcome.error().context.at("errno");
}

struct WorkspaceTest : ::testing::Test {
  Workspace workspace{kWorkspaceLimits, kNow};

  std::string write(std::string_view path, std::string_view text = "x") {
    return errno_of(workspace.write(path, text, FileEncoding::kUtf8, kNow));
  }
  std::string mkdir(std::string_view path, Depth depth = Depth::kOne) {
    return errno_of(workspace.make_directory(path, depth, kNow));
  }
  std::string remove(std::string_view path, Depth depth = Depth::kOne,
                     IfMissing missing = IfMissing::kFail) {
    return errno_of(workspace.remove(path, depth, missing, kNow));
  }
  std::string rename(std::string_view from, std::string_view to) {
    return errno_of(workspace.rename(from, to, kNow));
  }
  /// The text, or the errno.
  std::string read(std::string_view path) {
    const auto text = workspace.read(path, FileEncoding::kUtf8);
    return text.ok() ? text->content : errno_of(text);
  }
  std::vector<std::string> list(std::string_view path, Depth depth = Depth::kOne) {
    const auto entries = workspace.list(path, depth);
    std::vector<std::string> paths;
    if (!entries.ok()) return {errno_of(entries)};
    for (const auto& entry : *entries) paths.push_back(entry.path);
    return paths;
  }
  /// As a guest sees the files.
  wasi::FileSystem guest() {
    wasi::FileSystem files(wasi::standard_layout().build(), clocks_);
    files.mount(wasi::kWorkspaceMount, workspace.tree());
    return files;
  }

 private:
  wasi::SystemClocks clocks_;
};

TEST_F(WorkspaceTest, ReadsBackTextThatWasWritten) {
  ASSERT_EQ(write("/workspace/a.txt", "hello"), "ok");
  const auto text = workspace.read("/workspace/a.txt", FileEncoding::kUtf8);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->content, "hello");
  EXPECT_EQ(text->size, 5u);
  EXPECT_EQ(text->encoding, FileEncoding::kUtf8);
  EXPECT_FALSE(text->is_binary);
  EXPECT_EQ(text->updated_at_ms, kNowMs);
}

TEST_F(WorkspaceTest, ReadsBackBytesAsBase64) {
  ASSERT_EQ(errno_of(workspace.write("b", "AAEC//4=", FileEncoding::kBase64, kNow)), "ok");
  const auto text = workspace.read("b", FileEncoding::kBase64);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->content, "AAEC//4=");
  EXPECT_EQ(text->size, 5u);
  EXPECT_TRUE(text->is_binary);
  EXPECT_EQ(errno_of(workspace.write("b", "*", FileEncoding::kBase64, kNow)), "EINVAL");
}

TEST_F(WorkspaceTest, TextIsWhatADecoderMakesOfTheBytes) {
  ASSERT_EQ(write("bom",
                  "\xef\xbb\xbf"
                  "a"),
            "ok");
  ASSERT_EQ(write("bad",
                  "a\xff"
                  "b"),
            "ok");
  ASSERT_EQ(write("nul", std::string_view("a\0b", 3)), "ok");
  EXPECT_EQ(read("bom"), "a");
  EXPECT_EQ(workspace.read("bom", FileEncoding::kUtf8)->size, 4u);
  EXPECT_EQ(read("bad"),
            "a\xef\xbf\xbd"
            "b");
  EXPECT_TRUE(workspace.read("bad", FileEncoding::kUtf8)->is_binary);
  EXPECT_TRUE(workspace.read("nul", FileEncoding::kUtf8)->is_binary);
}

TEST_F(WorkspaceTest, RelativePathsStartAtTheGivenFolder) {
  EXPECT_EQ(*Workspace::normalize("a/./b//c", "/workspace/d"), "/workspace/d/a/b/c");
  EXPECT_EQ(*Workspace::normalize("../a", "/workspace/d"), "/workspace/a");
  EXPECT_EQ(*Workspace::normalize("/workspace/../workspace/a"), "/workspace/a");
  EXPECT_EQ(*Workspace::normalize("."), "/workspace");
  ASSERT_EQ(write("a", "x"), "ok");
  EXPECT_EQ(read("/workspace/a"), "x");
}

TEST_F(WorkspaceTest, PathsThatLeadOutAreRefused) {
  for (const char* path : {"../../etc/passwd", "/etc/passwd", "..", "/", "/workspacex",
                           "/workspace/../..", "a/../../b"}) {
    const auto outcome = workspace.read(path, FileEncoding::kUtf8);
    EXPECT_EQ(errno_of(outcome), "EACCES") << path;
    EXPECT_EQ(outcome.error().message, std::string("Path escapes /workspace: ") + path);
  }
  EXPECT_EQ(errno_of(workspace.read("", FileEncoding::kUtf8)), "ENOENT");
  EXPECT_EQ(workspace.read("", FileEncoding::kUtf8).error().message, "Path is required");
}

TEST_F(WorkspaceTest, ReadNeedsAFile) {
  ASSERT_EQ(write("f"), "ok");
  ASSERT_EQ(mkdir("d"), "ok");
  EXPECT_EQ(read("missing"), "ENOENT");
  EXPECT_EQ(read("missing/f"), "ENOENT");
  EXPECT_EQ(read("d"), "EISDIR");
  EXPECT_EQ(read("/workspace"), "EISDIR");
  EXPECT_EQ(read("f/below"), "ENOTDIR");
}

TEST_F(WorkspaceTest, WriteNeedsAFolderToPutTheFileIn) {
  ASSERT_EQ(write("f"), "ok");
  ASSERT_EQ(mkdir("d"), "ok");
  EXPECT_EQ(write("f/below"), "ENOTDIR");
  EXPECT_EQ(write("missing/f"), "ENOENT");
  EXPECT_EQ(write("d"), "EISDIR");
  EXPECT_EQ(write("/workspace"), "EISDIR");
}

TEST_F(WorkspaceTest, TheFirstFaultOfAWriteIsTheOneReported) {
  const std::string too_big((1 << 20) + 1, 'x');
  EXPECT_EQ(errno_of(workspace.write("/etc", "*", FileEncoding::kBase64, kNow)), "EACCES");
  EXPECT_EQ(errno_of(workspace.write("/workspace", "*", FileEncoding::kBase64, kNow)), "EISDIR");
  EXPECT_EQ(errno_of(workspace.write("missing/f", "*", FileEncoding::kBase64, kNow)), "EINVAL");
  EXPECT_EQ(write("missing/f", too_big), "EFBIG");
}

TEST_F(WorkspaceTest, MkdirWithoutParentsNeedsThemAndAFreeName) {
  EXPECT_EQ(mkdir("a/b"), "ENOENT");
  EXPECT_EQ(mkdir("a"), "ok");
  EXPECT_EQ(mkdir("a"), "EEXIST");
  ASSERT_EQ(write("f"), "ok");
  EXPECT_EQ(mkdir("f"), "EEXIST");
  EXPECT_EQ(mkdir("f/d"), "ENOTDIR");
  EXPECT_EQ(mkdir("/workspace"), "ok");
}

TEST_F(WorkspaceTest, MkdirWithParentsMakesThemAndAcceptsWhatIsThere) {
  EXPECT_EQ(mkdir("a/b/c", Depth::kAll), "ok");
  EXPECT_EQ(mkdir("a/b/c", Depth::kAll), "ok");
  EXPECT_EQ(mkdir("/workspace", Depth::kAll), "ok");
  EXPECT_EQ(workspace.stat("a/b/c")->type, FileType::kDirectory);
  ASSERT_EQ(write("a/f"), "ok");
  EXPECT_EQ(mkdir("a/f", Depth::kAll), "ENOTDIR");
  EXPECT_EQ(mkdir("a/f/g", Depth::kAll), "ENOTDIR");
}

TEST_F(WorkspaceTest, ListsAbsolutePathsInTheOrderOfTheirMaking) {
  ASSERT_EQ(mkdir("z"), "ok");
  ASSERT_EQ(write("z/f", "abc"), "ok");
  ASSERT_EQ(write("a"), "ok");
  EXPECT_THAT(list("/workspace"), ElementsAre("/workspace/z", "/workspace/a"));
  EXPECT_THAT(list(".", Depth::kAll),
              ElementsAre("/workspace/z", "/workspace/z/f", "/workspace/a"));
  EXPECT_THAT(list("missing"), ElementsAre("ENOENT"));
  EXPECT_THAT(list("a"), ElementsAre("ENOTDIR"));
  const auto entries = workspace.list("/workspace", Depth::kAll);
  EXPECT_EQ((*entries)[0].type, FileType::kDirectory);
  EXPECT_EQ((*entries)[0].size, 0u);
  EXPECT_EQ((*entries)[0].updated_at_ms, 0);
  EXPECT_EQ((*entries)[1].size, 3u);
  EXPECT_EQ((*entries)[1].updated_at_ms, kNowMs);
}

TEST_F(WorkspaceTest, FoldersAreDeletedOnlyWithAllThatIsInThem) {
  ASSERT_EQ(mkdir("full"), "ok");
  ASSERT_EQ(write("full/f"), "ok");
  ASSERT_EQ(mkdir("empty"), "ok");
  EXPECT_EQ(remove("full"), "EISDIR");
  EXPECT_EQ(remove("empty"), "EISDIR");
  EXPECT_THAT(workspace.remove("empty", Depth::kOne, IfMissing::kFail, kNow).error().message,
              HasSubstr("Pass { recursive: true }"));
  EXPECT_EQ(remove("full", Depth::kOne, IfMissing::kSucceed), "EISDIR");
  EXPECT_EQ(remove("full", Depth::kAll), "ok");
  EXPECT_EQ(remove("empty", Depth::kAll), "ok");
  EXPECT_EQ(remove("/workspace", Depth::kAll), "EACCES");
}

TEST_F(WorkspaceTest, DeletingWhatIsMissingCanBeFine) {
  ASSERT_EQ(write("f"), "ok");
  EXPECT_EQ(remove("missing"), "ENOENT");
  EXPECT_EQ(remove("missing", Depth::kOne, IfMissing::kSucceed), "ok");
  EXPECT_EQ(remove("missing/f", Depth::kOne, IfMissing::kSucceed), "ok");
  EXPECT_EQ(remove("f/below", Depth::kOne, IfMissing::kSucceed), "ENOTDIR");
  EXPECT_EQ(remove("f"), "ok");
  EXPECT_EQ(read("f"), "ENOENT");
}

TEST_F(WorkspaceTest, RenameMovesFilesAndFolders) {
  ASSERT_EQ(mkdir("d"), "ok");
  ASSERT_EQ(write("d/f", "text"), "ok");
  ASSERT_EQ(write("other", "other"), "ok");
  EXPECT_EQ(rename("d/f", "other"), "ok");
  EXPECT_EQ(read("other"), "text");
  EXPECT_EQ(rename("other", "d/f"), "ok");
  EXPECT_EQ(rename("d", "e"), "ok");
  EXPECT_EQ(read("e/f"), "text");
  EXPECT_EQ(rename("e/f", "e/f"), "ok");
  EXPECT_EQ(rename("e", "e"), "ok");
  EXPECT_EQ(read("e/f"), "text");
}

TEST_F(WorkspaceTest, RenameRefusesWhatDoesNotFit) {
  ASSERT_EQ(mkdir("full"), "ok");
  ASSERT_EQ(mkdir("full/sub"), "ok");
  ASSERT_EQ(mkdir("empty"), "ok");
  ASSERT_EQ(mkdir("d"), "ok");
  ASSERT_EQ(write("f"), "ok");
  EXPECT_EQ(rename("f", "d"), "EISDIR");
  EXPECT_EQ(rename("d", "f"), "ENOTDIR");
  EXPECT_EQ(rename("d", "full"), "ENOTEMPTY");
  EXPECT_EQ(rename("d", "empty"), "ok");
  EXPECT_EQ(rename("/workspace", "x"), "EACCES");
  EXPECT_EQ(rename("f", "/workspace"), "EACCES");
  EXPECT_EQ(rename("missing", "x"), "ENOENT");
  EXPECT_EQ(rename("f", "missing/f"), "ENOENT");
  EXPECT_EQ(rename("f", "f/x"), "ENOTDIR");
}

TEST_F(WorkspaceTest, AFolderIsNotMovedIntoItself) {
  ASSERT_EQ(mkdir("d/sub", Depth::kAll), "ok");
  EXPECT_EQ(rename("d", "d/sub/d"), "EINVAL");
  EXPECT_EQ(rename("d", "d/x"), "EINVAL");
  EXPECT_EQ(workspace.stat("d/sub")->type, FileType::kDirectory);
}

TEST_F(WorkspaceTest, StatTellsTypeSizeAndTime) {
  ASSERT_EQ(write("f", "abc"), "ok");
  const auto entry = workspace.stat("f");
  EXPECT_EQ(entry->type, FileType::kRegularFile);
  EXPECT_EQ(entry->size, 3u);
  EXPECT_EQ(entry->updated_at_ms, kNowMs);
  EXPECT_EQ(workspace.stat("/workspace")->type, FileType::kDirectory);
  EXPECT_EQ(errno_of(workspace.stat("missing")), "ENOENT");
}

TEST_F(WorkspaceTest, ExistsNeverFails) {
  ASSERT_EQ(write("f"), "ok");
  EXPECT_TRUE(workspace.exists("f"));
  EXPECT_TRUE(workspace.exists("/workspace"));
  for (const char* path : {"missing", "f/below", "/etc/passwd", ""})
    EXPECT_FALSE(workspace.exists(path)) << path;
}

TEST_F(WorkspaceTest, AFileHasALargestSize) {
  const std::string text(1 << 20, 'x');
  EXPECT_EQ(write("f", text), "ok");
  const auto outcome = workspace.write("f", text + "x", FileEncoding::kUtf8, kNow);
  EXPECT_EQ(errno_of(outcome), "EFBIG");
  EXPECT_EQ(outcome.error().code, ErrorCode::kFileTooLarge);
  EXPECT_THAT(outcome.error().context,
              UnorderedElementsAre(Pair("errno", "EFBIG"), Pair("maxSize", "1048576"),
                                   Pair("actualSize", "1048577")));
}

TEST_F(WorkspaceTest, TheWholeHasALargestSize) {
  const std::string text(1 << 20, 'x');
  for (int i = 0; i < 16; ++i) ASSERT_EQ(write("f" + std::to_string(i), text), "ok");
  const auto outcome = workspace.write("one", "x", FileEncoding::kUtf8, kNow);
  EXPECT_EQ(errno_of(outcome), "ENOSPC");
  EXPECT_EQ(outcome.error().message, "Workspace exceeds 16 MiB total");
  EXPECT_FALSE(workspace.exists("one"));
  EXPECT_EQ(write("f3", text), "ok") << "what it replaces does not count";
}

TEST_F(WorkspaceTest, ThereAreAtMostSoManyEntries) {
  ASSERT_EQ(mkdir("d"), "ok");
  for (int i = 1; i < 4096; ++i) ASSERT_EQ(write("d/" + std::to_string(i)), "ok");
  const auto outcome = workspace.write("one", "x", FileEncoding::kUtf8, kNow);
  EXPECT_EQ(errno_of(outcome), "ENOSPC");
  EXPECT_EQ(outcome.error().message, "Workspace exceeds 4096 entries");
  EXPECT_EQ(mkdir("two"), "ENOSPC");
  EXPECT_EQ(mkdir("two/three", Depth::kAll), "ENOSPC");
  EXPECT_EQ(write("d/7", "other"), "ok");
}

TEST_F(WorkspaceTest, LimitsHoldForGuestsToo) {
  auto files = guest();
  const std::string too_big((1 << 20) + 1, 'x');
  EXPECT_EQ(files.write_file("/workspace/f", as_bytes(too_big)), wasi::Errno::kFbig);
}

TEST_F(WorkspaceTest, AStateHoldsFoldersAndFilesAndPutsThemBack) {
  ASSERT_EQ(mkdir("empty"), "ok");
  ASSERT_EQ(mkdir("d"), "ok");
  ASSERT_EQ(write("d/f", "one"), "ok");
  ASSERT_EQ(write("g", "two"), "ok");
  const wasi::TreeState state = workspace.remember();
  EXPECT_EQ(state.entries().size(), 4u);
  Workspace other(kWorkspaceLimits, kNow);
  ASSERT_EQ(state.restore(*other.tree(), kNow), wasi::Errno::kSuccess);
  EXPECT_EQ(other.read("d/f", FileEncoding::kUtf8)->content, "one");
  EXPECT_EQ(other.stat("empty")->type, FileType::kDirectory);
}

TEST_F(WorkspaceTest, WhatGuestsMakeIsThereWithItsTime) {
  auto files = guest();
  ASSERT_EQ(files.make_directory("/workspace/made"), wasi::Errno::kSuccess);
  ASSERT_EQ(files.write_file("/workspace/made/f", as_bytes("by a guest")), wasi::Errno::kSuccess);
  EXPECT_EQ(read("made/f"), "by a guest");
  EXPECT_GT(workspace.stat("made/f")->updated_at_ms, 0);
  EXPECT_THAT(list("/workspace", Depth::kAll), ElementsAre("/workspace/made", "/workspace/made/f"));
}

TEST_F(WorkspaceTest, LinksThatGuestsMadeAreFollowedWithinTheWorkspace) {
  auto files = guest();
  ASSERT_EQ(mkdir("d/sub", Depth::kAll), "ok");
  ASSERT_EQ(write("d/f", "text"), "ok");
  const auto link = [&](const char* target, const char* path) {
    ASSERT_EQ(files.symlink(target, path), wasi::Errno::kSuccess);
  };
  link("d", "/workspace/to-d");
  link("/workspace/d/f", "/workspace/absolute");
  link("/home/user/d", "/workspace/by-home");
  link("/home/users", "/workspace/elsewhere");
  link("../f", "/workspace/d/sub/up");
  link("..", "/workspace/d/sub/parent");
  link("loop", "/workspace/loop");
  link("/tmp/x", "/workspace/out");
  link("../tmp/x", "/workspace/out-too");
  link("new", "/workspace/dangling");
  EXPECT_EQ(read("to-d/f"), "text");
  EXPECT_EQ(read("absolute"), "text");
  EXPECT_EQ(read("by-home/f"), "text");
  EXPECT_EQ(read("elsewhere"), "EACCES");
  EXPECT_EQ(read("to-d/sub/up"), "text");
  EXPECT_EQ(read("d/sub/parent/f"), "text");
  EXPECT_THAT(list("d/sub/parent"),
              ElementsAre("/workspace/d/sub/parent/sub", "/workspace/d/sub/parent/f"));
  EXPECT_EQ(read("loop"), "ELOOP");
  EXPECT_EQ(read("out"), "EACCES");
  EXPECT_EQ(read("out-too"), "EACCES");
  EXPECT_EQ(write("d/sub/parent", "x"), "EISDIR");
  EXPECT_EQ(write("dangling", "made"), "ok");
  EXPECT_EQ(read("new"), "made");
  EXPECT_EQ(mkdir("dangling"), "EEXIST");
  EXPECT_EQ(remove("to-d"), "ok") << "the link, not what it leads to";
  EXPECT_EQ(read("d/f"), "text");
}

TEST_F(WorkspaceTest, DisabledItRefusesHostsButCanStillBeKeptAlike) {
  ASSERT_EQ(mkdir("d"), "ok");
  ASSERT_EQ(write("d/a.mjs", "x"), "ok");
  const auto before = workspace.remember();
  workspace.set_disabled(true);
  EXPECT_EQ(read("d/a.mjs"), "EACCES");
  EXPECT_EQ(errno_of(workspace.read_bytes("d/a.mjs")), "EACCES");
  EXPECT_EQ(write("d/a.mjs"), "EACCES");
  EXPECT_EQ(mkdir("e"), "EACCES");
  EXPECT_THAT(list("d"), ElementsAre("EACCES"));
  EXPECT_EQ(remove("d/a.mjs"), "EACCES");
  EXPECT_EQ(rename("d", "e"), "EACCES");
  EXPECT_EQ(errno_of(workspace.stat("d")), "EACCES");
  EXPECT_EQ(workspace.stat("d").error().message, "File API is disabled for this sandbox");
  EXPECT_FALSE(workspace.exists("d"));

  EXPECT_TRUE(Workspace::normalize("a").ok());
  EXPECT_EQ(workspace.remember().entries().size(), 2u);
  EXPECT_TRUE(workspace.changes_since(before).files.empty());
  const WorkspaceDiff diff{.dirs = {"/workspace/new"},
                           .removed = {"/workspace/d", "/workspace/d/a.mjs"}};
  EXPECT_TRUE(workspace.apply_diff(diff, kNow).ok());
  workspace.set_disabled(false);
  EXPECT_THAT(list("/workspace"), ElementsAre("/workspace/new"));
}

}  // namespace
}  // namespace sw
