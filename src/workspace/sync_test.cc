// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sandbox_workers/workspace/workspace.h"
#include "workspace/test_copy.h"

namespace sw {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using wasi::Errno;

WorkspaceFile file(std::string path, std::string_view text, std::int64_t updated_at_ms = 5) {
  const BytesView bytes = as_bytes(text);
  return {std::move(path), wasi::SharedBytes::own(Bytes(bytes.begin(), bytes.end())),
          updated_at_ms};
}

TEST(ContentHash, HasTheProtocolsVectors) {
  const auto hash = [](std::string_view text) { return content_hash(as_bytes(text)); };
  EXPECT_EQ(hash(""), "811c9dc501000193");
  EXPECT_EQ(hash("a"), "e40c292c759b8e91");
  EXPECT_EQ(hash("hi"), "683af69a9f4e3ad4");
  EXPECT_EQ(hash("hello"), "4f9f2cab7d94b854");
  EXPECT_EQ(hash(std::string(1024, 'x')), "315c6dc556875593");
  EXPECT_EQ(hash(std::string_view("\x00\x01\x02\xff\xfe", 5)), "55c8fad1df0464da");
}

TEST(Manifest, HasSortedFoldersWithoutTheRootAndAHashForEachFile) {
  Copy copy;
  ASSERT_EQ(copy.guest.make_directories("/workspace/z/y"), Errno::kSuccess);
  ASSERT_EQ(copy.guest.make_directories("/workspace/a"), Errno::kSuccess);
  ASSERT_EQ(copy.guest.symlink("z/f", "/workspace/link"), Errno::kSuccess);
  copy.write("z/f", "hi");
  const WorkspaceManifest manifest = manifest_of(copy.workspace.remember());
  EXPECT_THAT(manifest.dirs, ElementsAre("/workspace/a", "/workspace/z", "/workspace/z/y"));
  EXPECT_THAT(manifest.files, ElementsAre(Pair("/workspace/z/f", "683af69a9f4e3ad4")));
  EXPECT_THAT(manifest.links, ElementsAre(Pair("/workspace/link", "z/f")));
}

TEST(Manifest, FollowsChangesOfAllKinds) {
  Copy copy;
  const auto hash = [&](const std::string& path) {
    return manifest_of(copy.workspace.remember()).files["/workspace/" + path];
  };
  copy.write("f", "one");
  EXPECT_EQ(hash("f"), content_hash(as_bytes("one")));
  copy.write("f", "two");
  EXPECT_EQ(hash("f"), content_hash(as_bytes("two")));
  const auto node = copy.guest.open_at(copy.guest.root(), "workspace/f", {.write = true});
  ASSERT_TRUE(node.ok());
  ASSERT_TRUE(copy.workspace.tree()->write(*node->node, 1, as_bytes("X"), kNow).ok());
  EXPECT_EQ(hash("f"), content_hash(as_bytes("tXo")));
  ASSERT_EQ(copy.guest.truncate("/workspace/f", 1), Errno::kSuccess);
  EXPECT_EQ(hash("f"), content_hash(as_bytes("t")));
  ASSERT_EQ(copy.guest.rename("/workspace/f", "/workspace/g"), Errno::kSuccess);
  EXPECT_EQ(hash("g"), content_hash(as_bytes("t")));
  ASSERT_EQ(copy.guest.remove("/workspace/g"), Errno::kSuccess);
  copy.write("g", "new");
  EXPECT_EQ(hash("g"), content_hash(as_bytes("new")));
}

TEST(Sync, OfThousandsOfUnchangedFilesComputesNoHash) {
  Copy copy;
  const std::string big(256 << 10, 'x');
  for (int i = 0; i < 4096; ++i)
    copy.write("f" + std::to_string(i), i < 400 ? std::string_view(big) : "small");
  const WorkspaceManifest manifest = manifest_of(copy.workspace.remember());
  const auto timed = [&] {
    // CPU time: what else the machine does is no cost of ours
    const std::clock_t start = std::clock();
    EXPECT_THAT(copy.sync(manifest), IsEmpty());
    return std::clock() - start;
  };
  const auto first = timed();  // hashes 100 MiB
  const auto again = std::min({timed(), timed(), timed()});
  EXPECT_LT(again * 4, first);
}

TEST(Sync, CreatesFoldersThenFilesAndKeepsTheirTimes) {
  Copy copy;
  wasi::Node* const root = &copy.workspace.tree()->root();
  WorkspaceManifest manifest;
  manifest.dirs = {"/workspace/d", "/workspace/d/empty"};
  manifest.files = {{"/workspace/d/f", content_hash(as_bytes("text"))}};
  EXPECT_THAT(copy.sync(manifest, {file("/workspace/d/f", "text")}), IsEmpty());
  EXPECT_EQ(copy.read("d/f"), "text");
  EXPECT_TRUE(copy.guest.exists("/workspace/d/empty"));
  EXPECT_EQ(copy.guest.stat("/workspace/d/f")->times.modified, 5'000'000u);
  EXPECT_EQ(root, &copy.workspace.tree()->root());
}

TEST(Sync, DeletesWhatIsNotListedKeepsWhatMatchesAndNamesWhatIsMissing) {
  Copy copy;
  ASSERT_EQ(copy.guest.make_directories("/workspace/old/deep"), Errno::kSuccess);
  copy.write("old/deep/f", "gone");
  copy.write("same", "same");
  copy.write("other", "before");
  ASSERT_EQ(copy.guest.symlink("same", "/workspace/gone-link"), Errno::kSuccess);
  WorkspaceManifest manifest;
  manifest.files = {{"/workspace/same", content_hash(as_bytes("same"))},
                    {"/workspace/other", content_hash(as_bytes("after"))},
                    {"/workspace/unknown", "0000000000000000"}};
  EXPECT_THAT(copy.sync(manifest), ElementsAre("/workspace/other", "/workspace/unknown"));
  EXPECT_EQ(copy.read("same"), "same");
  EXPECT_FALSE(copy.guest.exists("/workspace/old"));
  EXPECT_FALSE(copy.guest.stat("/workspace/gone-link", wasi::Follow::kNo).ok());
}

TEST(Sync, AFolderTakesThePlaceOfAFileAndAFileThatOfAFolder) {
  Copy copy;
  copy.write("a", "file");
  ASSERT_EQ(copy.guest.make_directories("/workspace/b/c"), Errno::kSuccess);
  copy.write("b/c/f", "deep");
  WorkspaceManifest manifest;
  manifest.dirs = {"/workspace/a"};
  manifest.files = {{"/workspace/b", content_hash(as_bytes("file now"))}};
  EXPECT_THAT(copy.sync(manifest), ElementsAre("/workspace/b"));
  EXPECT_THAT(copy.sync(manifest, {file("/workspace/b", "file now")}), IsEmpty());
  EXPECT_EQ(copy.guest.stat("/workspace/a")->type, wasi::FileType::kDirectory);
  EXPECT_EQ(copy.read("b"), "file now");
}

TEST(Sync, FilesThatStayKeepTheirIdentity) {
  Copy copy;
  copy.write("f", "one");
  const auto before = copy.guest.open_at(copy.guest.root(), "workspace/f", {});
  WorkspaceManifest manifest;
  manifest.files = {{"/workspace/f", content_hash(as_bytes("two"))}};
  EXPECT_THAT(copy.sync(manifest, {file("/workspace/f", "two")}), IsEmpty());
  const auto after = copy.guest.open_at(copy.guest.root(), "workspace/f", {});
  EXPECT_EQ(before->node, after->node);
  EXPECT_EQ(as_text(*before->node->content.view()), "two");
}

TEST(Sync, OfOneNameOfAHardLinkedFileLeavesTheOtherAlone) {
  Copy copy;
  copy.write("a", "one");
  ASSERT_EQ(copy.guest.link("/workspace/a", "/workspace/b"), Errno::kSuccess);
  WorkspaceManifest manifest;
  manifest.files = {{"/workspace/a", content_hash(as_bytes("two"))},
                    {"/workspace/b", content_hash(as_bytes("one"))}};
  EXPECT_THAT(copy.sync(manifest, {file("/workspace/a", "two")}), IsEmpty());
  EXPECT_EQ(copy.read("a") + copy.read("b"), "twoone");
}

TEST(Sync, LinksAreEntriesOfTheirOwn) {
  Copy copy;
  copy.write("target", "text");
  copy.write("was-file", "x");
  ASSERT_EQ(copy.guest.symlink("target", "/workspace/was-link"), Errno::kSuccess);
  WorkspaceManifest manifest = manifest_of(copy.workspace.remember());
  manifest.files.erase("/workspace/was-file");
  manifest.links = {{"/workspace/was-file", "target"}};
  manifest.files.emplace("/workspace/was-link", content_hash(as_bytes("own")));
  EXPECT_THAT(copy.sync(manifest), ElementsAre("/workspace/was-link"));
  EXPECT_THAT(copy.sync(manifest, {file("/workspace/was-link", "own")}), IsEmpty());
  EXPECT_EQ(copy.read("was-file"), "text");
  EXPECT_EQ(copy.read("was-link"), "own");
  EXPECT_EQ(copy.read("target"), "text") << "written through the link";
}

TEST(Sync, NeitherLimitsNorTheFlagHoldItUp) {
  Copy copy;
  const wasi::TreeLimits small{
      .file_bytes_max = 2, .tree_bytes_max = 3, .entries_max = 1, .depth_max = 1};
  WorkspaceManifest manifest;
  manifest.dirs = {"/workspace/a", "/workspace/a/b"};
  manifest.files = {{"/workspace/a/b/f", content_hash(as_bytes("longer"))}};
  copy.workspace.set_disabled(true);
  copy.workspace.tree()->set_limits(small);
  EXPECT_THAT(copy.sync(manifest, {file("/workspace/a/b/f", "longer")}), IsEmpty());
  EXPECT_TRUE(copy.workspace.disabled());
  EXPECT_EQ(copy.read("a/b/f"), "EACCES");
  EXPECT_EQ(copy.guest.make_directory("/workspace/c"), Errno::kAcces);
  EXPECT_EQ(manifest_of(copy.workspace.remember()).files.size(), 1u);
  copy.workspace.set_disabled(false);
  EXPECT_EQ(copy.guest.write_file("/workspace/a/b/f", as_bytes("xyz")), Errno::kFbig);
  EXPECT_EQ(copy.guest.make_directory("/workspace/c"), Errno::kNospc);
}

TEST(Sync, RefusesPathsThatCannotBe) {
  Copy copy;
  for (const char* path : {"/etc/passwd", "/workspace", "/workspace/", "/workspace/../x",
                           "/workspace/a//b", "/workspacex/a", "a", ""}) {
    WorkspaceDiff diff;
    diff.files = {file(path, "x")};
    EXPECT_FALSE(copy.workspace.apply_diff(diff, kNow).ok()) << path;
  }
}

TEST(Diff, TellsWhatWasMadeChangedAndRemoved) {
  Copy copy;
  auto before = copy.workspace.remember();
  copy.write("b", "1");
  auto diff = copy.workspace.changes_since(before);
  ASSERT_EQ(diff.files.size(), 1u);
  EXPECT_EQ(diff.files[0].path, "/workspace/b");

  before = copy.workspace.remember();
  copy.write("b", "2");
  copy.write("c", "1");
  diff = copy.workspace.changes_since(before);
  ASSERT_EQ(diff.files.size(), 2u);
  EXPECT_EQ(diff.files[0].path, "/workspace/b");
  EXPECT_EQ(diff.files[1].path, "/workspace/c");

  before = copy.workspace.remember();
  ASSERT_EQ(copy.guest.remove("/workspace/b"), Errno::kSuccess);
  diff = copy.workspace.changes_since(before);
  EXPECT_THAT(diff.files, IsEmpty());
  EXPECT_THAT(diff.removed, ElementsAre("/workspace/b"));
}

TEST(Diff, RemovesInAnyOrder) {
  Copy copy;
  ASSERT_EQ(copy.guest.make_directories("/workspace/d/sub"), Errno::kSuccess);
  copy.write("d/sub/f", "x");
  copy.write("keep", "x");
  copy.write("gone", "x");
  WorkspaceDiff diff;
  diff.removed = {"/workspace/gone", "/workspace/d", "/workspace/d/sub", "/workspace/d/sub/f",
                  "/workspace/unknown/f"};
  ASSERT_TRUE(copy.workspace.apply_diff(diff, kNow).ok());
  EXPECT_THAT(manifest_of(copy.workspace.remember()).files,
              ElementsAre(Pair("/workspace/keep", testing::_)));
  EXPECT_THAT(manifest_of(copy.workspace.remember()).dirs, IsEmpty());
}

TEST(Diff, CarriesEverythingToTheOtherCopy) {
  Copy from;
  Copy to;
  ASSERT_EQ(from.guest.make_directories("/workspace/d/empty"), Errno::kSuccess);
  from.write("d/f", "one");
  from.write("was-file", "x");
  from.write("was-also-file", "x");
  ASSERT_EQ(from.guest.symlink("d", "/workspace/was-link"), Errno::kSuccess);
  ASSERT_TRUE(to.workspace.apply_diff(from.workspace.changes_since({}), kNow).ok());
  EXPECT_EQ(manifest_of(to.workspace.remember()).files,
            manifest_of(from.workspace.remember()).files);

  const auto before = from.workspace.remember();
  ASSERT_EQ(from.guest.remove("/workspace/was-file"), Errno::kSuccess);
  ASSERT_EQ(from.guest.make_directory("/workspace/was-file"), Errno::kSuccess);
  ASSERT_EQ(from.guest.remove("/workspace/was-also-file"), Errno::kSuccess);
  ASSERT_EQ(from.guest.symlink("d/f", "/workspace/was-also-file"), Errno::kSuccess);
  ASSERT_EQ(from.guest.remove("/workspace/was-link"), Errno::kSuccess);
  from.write("was-link", "file now");
  ASSERT_EQ(from.guest.remove_all("/workspace/d"), Errno::kSuccess);
  from.write("d", "file, too");
  ASSERT_TRUE(to.workspace.apply_diff(from.workspace.changes_since(before), kNow).ok());
  EXPECT_EQ(manifest_of(to.workspace.remember()).dirs, manifest_of(from.workspace.remember()).dirs);
  EXPECT_EQ(manifest_of(to.workspace.remember()).files,
            manifest_of(from.workspace.remember()).files);
  EXPECT_EQ(manifest_of(to.workspace.remember()).links,
            manifest_of(from.workspace.remember()).links);
}

TEST(Diff, AFileThatWasOnlyTouchedIsOneOfTheFiles) {
  Copy copy;
  copy.write("f", "x");
  const auto before = copy.workspace.remember();
  ASSERT_EQ(copy.guest.set_file_times("/workspace/f", {.accessed = {}, .modified = 7'000'000}),
            Errno::kSuccess);
  const auto diff = copy.workspace.changes_since(before);
  ASSERT_EQ(diff.files.size(), 1u);
  EXPECT_EQ(diff.files[0].updated_at_ms, 7);
}

TEST(Diff, NamesOnlyWhatARunChanged) {
  Copy copy;
  act(copy, "folder d; write d/f 1; link l d; folder e; write e/f 1; folder g");
  const auto before = copy.workspace.remember();
  act(copy, "write new 1; write temporary 1; remove temporary; remove e; folder h; link m d");
  const auto diff = copy.workspace.changes_since(before);
  EXPECT_THAT(diff.dirs, ElementsAre("/workspace/h"));
  ASSERT_EQ(diff.files.size(), 1U);
  EXPECT_EQ(diff.files[0].path, "/workspace/new");
  EXPECT_THAT(diff.links, ElementsAre(Pair("/workspace/m", "d")));
  EXPECT_THAT(diff.removed, ElementsAre("/workspace/e", "/workspace/e/f"));
}

TEST(Diff, FoldersInAnyOrderAreThere) {
  Copy copy;
  act(copy, "folder a; folder b");
  WorkspaceDiff diff;
  diff.dirs = {"/workspace/c", "/workspace/b", "/workspace/a"};
  ASSERT_TRUE(copy.workspace.apply_diff(diff, kNow).ok());
  EXPECT_EQ(text_of(copy), "a/ b/ c/");
}

}  // namespace
}  // namespace sw
