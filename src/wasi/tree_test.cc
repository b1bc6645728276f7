// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasi/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "wasi/test_support.h"

namespace sw::wasi {
namespace {

using ::testing::ElementsAre;

constexpr std::uint64_t kNow = 1000;
constexpr std::uint64_t kLater = 2000;

std::shared_ptr<Node> file_in(Tree& tree, std::string_view name, std::string_view text = "") {
  auto node = tree.create(tree.root(), name, FileType::kRegularFile, kNow).value();
  EXPECT_EQ(tree.write(*node, 0, as_bytes(text), kNow).value(), text.size());
  return node;
}

std::shared_ptr<Node> folder_in(Tree& tree, Node& parent, std::string_view name) {
  return tree.create(parent, name, FileType::kDirectory, kNow).value();
}

std::string text_of(const Node& node) { return std::string(as_text(node.content.view().value())); }

std::vector<std::string> listing(const Node& directory, std::uint64_t from = 0) {
  std::vector<std::string> names;
  EXPECT_EQ(directory.directory->for_each(from,
                                          [&](std::string_view name, const Directory::Entry&) {
                                            names.emplace_back(name);
                                            return true;
                                          }),
            Errno::kSuccess);
  return names;
}

TEST(NameError, TellsWhatIsWrong) {
  EXPECT_EQ(name_error("a"), Errno::kSuccess);
  EXPECT_EQ(name_error("\xE2\x98\xBA"), Errno::kSuccess);
  EXPECT_EQ(name_error(""), Errno::kNoent);
  EXPECT_EQ(name_error(std::string_view("a\0b", 3)), Errno::kInval);
  EXPECT_EQ(name_error("a/b"), Errno::kInval);
  EXPECT_EQ(name_error("\xFF"), Errno::kIlseq);
  EXPECT_EQ(name_error(std::string(kNameBytesMax, 'x')), Errno::kSuccess);
  EXPECT_EQ(name_error(std::string(kNameBytesMax + 1, 'x')), Errno::kNametoolong);
}

TEST(Tree, AGapReadsAsZeros) {
  Tree tree({}, kNow);
  const auto file = file_in(tree, "f", "ab");
  EXPECT_EQ(tree.write(*file, 4, as_bytes("c"), kNow).value(), 1U);
  EXPECT_EQ(text_of(*file), std::string("ab\0\0c", 5));
  EXPECT_EQ(tree.resize(*file, 7, kNow), Errno::kSuccess);
  EXPECT_EQ(text_of(*file), std::string("ab\0\0c\0\0", 7));
  EXPECT_EQ(tree.resize(*file, 1, kNow), Errno::kSuccess);
  EXPECT_EQ(tree.resize(*file, 3, kNow), Errno::kSuccess);
  EXPECT_EQ(text_of(*file), std::string("a\0\0", 3));  // what was cut off does not come back
}

TEST(Tree, WritesOverTheMiddleAndTheEnd) {
  Tree tree({}, kNow);
  const auto file = file_in(tree, "f", "abcdef");
  EXPECT_EQ(tree.write(*file, 2, as_bytes("XY"), kNow).value(), 2U);
  EXPECT_EQ(text_of(*file), "abXYef");
  EXPECT_EQ(tree.write(*file, 5, as_bytes("123"), kNow).value(), 3U);
  EXPECT_EQ(text_of(*file), "abXYe123");
}

TEST(Tree, AFileMayBeAsLargeAsItsLimit) {
  Tree tree({.file_bytes_max = 10}, kNow);
  const auto file = file_in(tree, "f");
  EXPECT_EQ(tree.resize(*file, 9, kNow), Errno::kSuccess);
  EXPECT_EQ(tree.resize(*file, 10, kNow), Errno::kSuccess);
  EXPECT_EQ(tree.resize(*file, 11, kNow), Errno::kFbig);
  EXPECT_EQ(tree.set_content(*file, SharedBytes::own(Bytes(10)), kNow), Errno::kSuccess);
  EXPECT_EQ(tree.set_content(*file, SharedBytes::own(Bytes(11)), kNow), Errno::kFbig);
  EXPECT_EQ(tree.write(*file, 8, as_bytes("12"), kNow).value(), 2U);
  EXPECT_EQ(tree.write(*file, 8, as_bytes("123"), kNow).value(), 2U);  // short: what fits
  EXPECT_EQ(tree.write(*file, 10, as_bytes("1"), kNow).error(), Errno::kFbig);
  EXPECT_EQ(
      tree.write(*file, std::numeric_limits<std::uint64_t>::max(), as_bytes("1"), kNow).error(),
      Errno::kFbig);
  EXPECT_EQ(file->size(), 10U);
}

TEST(Tree, HoldsAsManyBytesAsItsLimit) {
  Tree tree({.tree_bytes_max = 10}, kNow);
  const auto one = file_in(tree, "1", "123456");
  const auto two = file_in(tree, "2");
  EXPECT_EQ(tree.resize(*two, 3, kNow), Errno::kSuccess);
  EXPECT_EQ(tree.resize(*two, 4, kNow), Errno::kSuccess);
  EXPECT_EQ(tree.resize(*two, 5, kNow), Errno::kNospc);
  EXPECT_EQ(tree.write(*two, 4, as_bytes("x"), kNow).error(), Errno::kNospc);
  EXPECT_EQ(tree.write(*two, 2, as_bytes("xyz"), kNow).value(), 2U);
  EXPECT_EQ(tree.set_content(*two, SharedBytes::own(Bytes(4)), kNow), Errno::kSuccess);
  EXPECT_EQ(tree.set_content(*two, SharedBytes::own(Bytes(5)), kNow), Errno::kNospc);
  EXPECT_EQ(tree.create_symlink(tree.root(), "l", "t", kNow).error(), Errno::kNospc);
  EXPECT_EQ(tree.resize(*one, 5, kNow), Errno::kSuccess);
  EXPECT_TRUE(tree.create_symlink(tree.root(), "l", "t", kNow).ok());
  EXPECT_EQ(tree.usage().bytes, 10U);
}

TEST(Tree, HoldsAsManyNamesAsItsLimit) {
  Tree tree({.entries_max = 2}, kNow);
  const auto file = file_in(tree, "1");
  EXPECT_EQ(tree.link(tree.root(), "2", file, kNow), Errno::kSuccess);
  EXPECT_EQ(tree.create(tree.root(), "3", FileType::kDirectory, kNow).error(), Errno::kNospc);
  EXPECT_EQ(tree.link(tree.root(), "3", file, kNow), Errno::kNospc);
  EXPECT_EQ(tree.rename(tree.root(), "2", tree.root(), "3", kNow), Errno::kSuccess);
  EXPECT_EQ(tree.unlink(tree.root(), "1", kNow), Errno::kSuccess);
  EXPECT_EQ(tree.usage().entries, 1U);
  EXPECT_TRUE(tree.create(tree.root(), "4", FileType::kDirectory, kNow).ok());
}

TEST(Tree, IsAsDeepAsItsLimit) {
  Tree tree({.depth_max = 3}, kNow);
  const auto one = folder_in(tree, tree.root(), "1");
  const auto two = folder_in(tree, *one, "2");
  const auto three = folder_in(tree, *two, "3");
  EXPECT_EQ(tree.create(*three, "4", FileType::kDirectory, kNow).error(), Errno::kNametoolong);
  EXPECT_TRUE(tree.create(*three, "file", FileType::kRegularFile, kNow).ok());
  const auto flat = folder_in(tree, tree.root(), "flat");
  EXPECT_EQ(tree.rename(tree.root(), "flat", *two, "flat", kNow), Errno::kSuccess);
  EXPECT_EQ(tree.rename(*two, "flat", *three, "flat", kNow), Errno::kNametoolong);
  const auto other = folder_in(tree, tree.root(), "other");
  folder_in(tree, *other, "below");
  EXPECT_EQ(tree.rename(tree.root(), "other", *two, "other", kNow), Errno::kNametoolong);
  EXPECT_EQ(tree.rename(tree.root(), "other", *one, "other", kNow), Errno::kSuccess);
}

TEST(Tree, AnUnlinkedFileKeepsItsContentAndItsBytesCountUntilItIsClosed) {
  Tree tree({}, kNow);
  auto file = file_in(tree, "f", "content");
  EXPECT_EQ(tree.unlink(tree.root(), "f", kLater), Errno::kSuccess);
  EXPECT_EQ(text_of(*file), "content");
  EXPECT_EQ(file->links, 0U);
  EXPECT_EQ(tree.usage().bytes, 7U);
  EXPECT_EQ(tree.usage().entries, 0U);
  EXPECT_EQ(tree.link(tree.root(), "back", file, kLater), Errno::kNoent);
  file.reset();
  EXPECT_EQ(tree.usage().bytes, 0U);
}

TEST(Tree, HardLinksShareOneFile) {
  Tree tree({}, kNow);
  const auto file = file_in(tree, "a", "1");
  EXPECT_EQ(tree.link(tree.root(), "b", file, kLater), Errno::kSuccess);
  EXPECT_EQ(file->links, 2U);
  EXPECT_EQ(file->times.changed, kLater);
  EXPECT_EQ(tree.usage().bytes, 1U);
  EXPECT_EQ(tree.unlink(tree.root(), "a", kLater), Errno::kSuccess);
  EXPECT_EQ(file->links, 1U);
  EXPECT_EQ(tree.link(tree.root(), "b", file, kNow), Errno::kExist);
  const auto folder = folder_in(tree, tree.root(), "d");
  EXPECT_EQ(tree.link(tree.root(), "e", folder, kNow), Errno::kPerm);
}

TEST(Tree, RenameOntoTheOtherNameOfAFileLeavesBoth) {
  Tree tree({}, kNow);
  const auto file = file_in(tree, "a");
  EXPECT_EQ(tree.link(tree.root(), "b", file, kNow), Errno::kSuccess);
  EXPECT_EQ(tree.rename(tree.root(), "a", tree.root(), "b", kNow), Errno::kSuccess);
  EXPECT_THAT(listing(tree.root()), ElementsAre("a", "b"));
}

TEST(Tree, RenameRefusesWhatPosixRefuses) {
  Tree tree({}, kNow);
  file_in(tree, "file");
  const auto full = folder_in(tree, tree.root(), "full");
  const auto inner = folder_in(tree, *full, "inner");
  folder_in(tree, tree.root(), "empty");
  Node& root = tree.root();
  EXPECT_EQ(tree.rename(root, "file", root, "empty", kNow), Errno::kIsdir);
  EXPECT_EQ(tree.rename(root, "empty", root, "file", kNow), Errno::kNotdir);
  EXPECT_EQ(tree.rename(root, "empty", root, "full", kNow), Errno::kNotempty);
  EXPECT_EQ(tree.rename(root, "full", *inner, "x", kNow), Errno::kInval);
  EXPECT_EQ(tree.rename(root, "full", *full, "x", kNow), Errno::kInval);
  EXPECT_EQ(tree.rename(*full, "inner", root, "full", kNow), Errno::kNotempty);
  EXPECT_EQ(tree.rename(root, "missing", root, "x", kNow), Errno::kNoent);
  EXPECT_EQ(tree.rename(root, "full", root, "empty", kNow), Errno::kSuccess);
  EXPECT_THAT(listing(root), ElementsAre("file", "empty"));
  EXPECT_EQ(inner->parent, full.get());
}

TEST(Tree, MovingADirectoryMovesItsParentAndTheLinkCounts) {
  Tree tree({}, kNow);
  const auto a = folder_in(tree, tree.root(), "a");
  const auto b = folder_in(tree, tree.root(), "b");
  const auto moved = folder_in(tree, *a, "x");
  EXPECT_EQ(a->links, 3U);
  EXPECT_EQ(tree.rename(*a, "x", *b, "y", kLater), Errno::kSuccess);
  EXPECT_EQ(moved->parent, b.get());
  EXPECT_EQ(a->links, 2U);
  EXPECT_EQ(b->links, 3U);
  EXPECT_EQ(moved->links, 2U);
  EXPECT_EQ(a->times.modified, kLater);
  EXPECT_EQ(b->times.modified, kLater);
  EXPECT_EQ(tree.usage().entries, 3U);
}

TEST(Tree, NothingCanBeMadeInARemovedDirectory) {
  Tree tree({}, kNow);
  const auto folder = folder_in(tree, tree.root(), "d");
  const auto file = file_in(tree, "f");
  EXPECT_EQ(tree.remove_directory(tree.root(), "d", kNow), Errno::kSuccess);
  EXPECT_EQ(tree.create(*folder, "x", FileType::kRegularFile, kNow).error(), Errno::kNoent);
  EXPECT_EQ(tree.link(*folder, "x", file, kNow), Errno::kNoent);
  EXPECT_EQ(tree.rename(tree.root(), "f", *folder, "x", kNow), Errno::kNoent);
  EXPECT_THAT(listing(tree.root()), ElementsAre("f"));
}

TEST(Tree, RemovesDirectoriesOnlyWhenEmptyUnlessAskedForAll) {
  Tree tree({}, kNow);
  const auto a = folder_in(tree, tree.root(), "a");
  const auto b = folder_in(tree, *a, "b");
  folder_in(tree, *b, "c");
  EXPECT_EQ(tree.remove_directory(tree.root(), "a", kNow), Errno::kNotempty);
  EXPECT_EQ(tree.unlink(tree.root(), "a", kNow), Errno::kIsdir);
  EXPECT_EQ(tree.remove_all(tree.root(), "a", kNow), Errno::kSuccess);
  EXPECT_EQ(tree.usage().entries, 0U);
  EXPECT_EQ(tree.root().links, 2U);
  EXPECT_EQ(b->parent, nullptr);
}

TEST(Tree, ReadOnlyAndDisabledTreesRefuseEveryChange) {
  Tree tree({}, kNow);
  const auto file = file_in(tree, "f", "x");
  folder_in(tree, tree.root(), "d");
  const auto every_change = [&](Errno expected) {
    Node& root = tree.root();
    EXPECT_EQ(tree.create(root, "n", FileType::kRegularFile, kNow).error(), expected);
    EXPECT_EQ(tree.create_symlink(root, "n", "t", kNow).error(), expected);
    EXPECT_EQ(tree.link(root, "n", file, kNow), expected);
    EXPECT_EQ(tree.unlink(root, "f", kNow), expected);
    EXPECT_EQ(tree.remove_directory(root, "d", kNow), expected);
    EXPECT_EQ(tree.remove_all(root, "d", kNow), expected);
    EXPECT_EQ(tree.rename(root, "f", root, "n", kNow), expected);
    EXPECT_EQ(tree.write(*file, 0, as_bytes("y"), kNow).error(), expected);
    EXPECT_EQ(tree.resize(*file, 0, kNow), expected);
    EXPECT_EQ(tree.set_content(*file, SharedBytes::own({}), kNow), expected);
  };
  tree.set_read_only(true);
  every_change(Errno::kRofs);
  tree.set_disabled(true);
  every_change(Errno::kAcces);
  EXPECT_THAT(listing(tree.root()), ElementsAre("f", "d"));
  EXPECT_EQ(text_of(*file), "x");
}

TEST(Directory, AReaderMissesNothingAndSeesNothingTwice) {
  Tree tree({}, kNow);
  for (const char* name : {"a", "b", "c", "d"}) file_in(tree, name);
  std::vector<std::string> seen;
  std::uint64_t next = 0;
  const auto read_one = [&] {
    return tree.root().directory->for_each(
        next, [&](std::string_view name, const Directory::Entry& entry) {
          seen.emplace_back(name);
          next = entry.order + 1;
          return false;
        });
  };
  EXPECT_EQ(read_one(), Errno::kSuccess);
  EXPECT_EQ(read_one(), Errno::kSuccess);
  EXPECT_EQ(tree.unlink(tree.root(), "a", kNow), Errno::kSuccess);  // already seen
  EXPECT_EQ(tree.unlink(tree.root(), "c", kNow), Errno::kSuccess);  // next in line
  EXPECT_EQ(tree.rename(tree.root(), "b", tree.root(), "b2", kNow),
            Errno::kSuccess);  // seen under its old name
  file_in(tree, "e");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(read_one(), Errno::kSuccess);
  EXPECT_THAT(seen, ElementsAre("a", "b", "d", "e"));
}

TEST(Directory, RenamingEverythingThatIsSeenComesToAnEnd) {
  Tree tree({}, kNow);
  for (const char* name : {"a", "b", "c"}) file_in(tree, name);
  std::uint64_t next = 0;
  int steps = 0;
  for (bool more = true; more && steps < 100;) {
    more = false;
    std::string found;
    EXPECT_EQ(
        tree.root().directory->for_each(next,
                                        [&](std::string_view name, const Directory::Entry& entry) {
                                          found = name;
                                          next = entry.order + 1;
                                          more = true;
                                          return false;
                                        }),
        Errno::kSuccess);
    if (!more) break;
    ++steps;
    EXPECT_EQ(tree.rename(tree.root(), found, tree.root(), found + "x", kNow), Errno::kSuccess);
  }
  EXPECT_EQ(steps, 3);
}

TEST(Directory, RestoresAnOrderAndListsTheRestAfterIt) {
  Tree tree({}, kNow);
  for (const char* name : {"new", "b", "a"}) file_in(tree, name);
  tree.root().directory->restore_order({{7, "a"}, {9, "b"}, {9, "new"}, {10, "gone"}, {8, "a"}},
                                       12);
  EXPECT_THAT(listing(tree.root()), ElementsAre("a", "b", "new"));
  EXPECT_THAT(listing(tree.root(), 8), ElementsAre("b", "new"));
  file_in(tree, "last");
  EXPECT_THAT(listing(tree.root(), 12), ElementsAre("new", "last"));
  EXPECT_EQ(tree.unlink(tree.root(), "b", kNow), Errno::kSuccess);
  EXPECT_THAT(listing(tree.root()), ElementsAre("a", "new", "last"));
}

TEST(Tree, WalkVisitsEverythingWithItsPath) {
  Tree tree({}, kNow);
  const auto folder = folder_in(tree, tree.root(), "d");
  folder_in(tree, *folder, "empty");
  file_in(tree, "f");
  std::vector<std::string> paths;
  const auto visit = [&](const std::string& path, Node&) {
    paths.push_back(path);
    return true;
  };
  EXPECT_EQ(tree.walk(visit), Errno::kSuccess);
  EXPECT_THAT(paths, ElementsAre("d", "d/empty", "f"));
}

TEST(FileContent, SharedBytesAreCopiedOnlyWhenWrittenTo) {
  FileContent content;
  const SharedBytes shared = SharedBytes::own({std::byte{'a'}, std::byte{'b'}});
  content.borrow(shared);
  EXPECT_TRUE(content.borrows(shared.bytes));
  EXPECT_EQ(content.write(1, as_bytes("X")), Errno::kSuccess);
  EXPECT_FALSE(content.borrows(shared.bytes));
  EXPECT_EQ(as_text(content.view().value()), "aX");
  EXPECT_EQ(as_text(shared.bytes), "ab");
}

TEST(FileContent, LentBytesStayAsTheyWereAndOwnOnesAreWrittenInPlace) {
  FileContent content;
  EXPECT_TRUE(content.share()->bytes.empty());
  EXPECT_EQ(content.write(0, as_bytes("abc")), Errno::kSuccess);
  const std::byte* const at = content.view()->data();
  {
    const SharedBytes lent = content.share().value();
    EXPECT_EQ(lent.bytes.data(), at);
    EXPECT_EQ(content.write(0, as_bytes("X")), Errno::kSuccess);
    EXPECT_EQ(as_text(lent.bytes), "abc");
    EXPECT_EQ(as_text(content.view().value()), "Xbc");
  }
  const std::byte* const copy = content.view()->data();
  (void)content.share();  // held by nobody any more
  EXPECT_EQ(content.write(1, as_bytes("Y")), Errno::kSuccess);
  EXPECT_EQ(content.view()->data(), copy);
}

TEST(FileContent, LazyBytesAreMadeOnceAndFailAsIo) {
  int made = 0;
  auto lazy = std::make_shared<LazyBytes>(1, [&made]() -> Result<Bytes> {
    ++made;
    return Bytes{std::byte{'z'}};
  });
  FileContent one;
  FileContent two;
  one.borrow(lazy);
  two.borrow(lazy);
  EXPECT_EQ(one.size(), 1U);
  EXPECT_EQ(made, 0);
  EXPECT_EQ(as_text(one.view().value()), "z");
  EXPECT_EQ(as_text(two.view().value()), "z");
  EXPECT_EQ(made, 1);
  FileContent wrong;
  wrong.borrow(std::make_shared<LazyBytes>(2, [] { return Result<Bytes>(Bytes(1)); }));
  EXPECT_EQ(wrong.view().error(), Errno::kIo);
  std::byte to[2];
  EXPECT_EQ(wrong.read(0, to).error(), Errno::kIo);
}

TEST(ErrnoNames, AreThoseOfPosix) {
  EXPECT_EQ(errno_name(Errno::kNoent), "ENOENT");
  EXPECT_EQ(static_cast<int>(Errno::kNotcapable), 76);
  EXPECT_EQ(static_cast<int>(Errno::kNoent), 44);
  EXPECT_EQ(static_cast<int>(Errno::kRofs), 69);
  EXPECT_EQ(errno_text(Errno::kNospc), "no space left on device");
}

}  // namespace
}  // namespace sw::wasi
