// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasi/tree_journal.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "sandbox_workers/wasi/file_system.h"
#include "wasi/test_clocks.h"
#include "wasi/tree_state.h"

namespace sw::wasi {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string text_of(const std::string& path, const TreeState::Entry& entry) {
  return fmt::format("{} {} '{}' '{}' {} {} {}", path, static_cast<int>(entry.type),
                     as_text(entry.bytes.bytes), entry.target, entry.times.accessed,
                     entry.times.modified, entry.times.changed);
}

std::vector<std::string> text_of(const TreeState& state) {
  std::vector<std::string> lines;
  for (const auto& [path, entry] : state.entries()) lines.push_back(text_of(path, entry));
  return lines;
}

struct TreeJournalTest : ::testing::Test {
  FixedClocks clocks;
  std::shared_ptr<Tree> tree = std::make_shared<Tree>(TreeLimits{}, 1);
  FileSystem files{standard_layout().build(), clocks};

  TreeJournalTest() { files.mount(kWorkspaceMount, tree); }

  void write(const std::string& path, std::string_view text) {
    ASSERT_EQ(files.write_file("/workspace/" + path, as_bytes(text)), Errno::kSuccess);
  }
  NodeRef open(const std::string& path) {
    return files.open_at(files.root(), "workspace/" + path, {.write = true}).value();
  }
  /// What changed since `before`, by path; everything is looked at to see that it is right.
  std::vector<std::string> changes_since(const TreeState& before) {
    const TreeState now = tree->state();
    EXPECT_EQ(text_of(now), text_of(TreeState::of(*tree)));
    std::vector<std::string> paths;
    for (const Change& change : before.changes_to(now)) paths.push_back(change.path);
    return paths;
  }
};

TEST_F(TreeJournalTest, TellsWhatChangedAndOldStatesStayAsTheyAre) {
  write("a", "one");
  const TreeState before = tree->state();
  const std::vector<std::string> text = text_of(before);
  write("a", "two");
  write("b", "three");
  EXPECT_THAT(changes_since(before), ElementsAre("a", "b"));
  EXPECT_EQ(text_of(before), text);
  EXPECT_THAT(changes_since(tree->state()), IsEmpty());
}

TEST_F(TreeJournalTest, AChangeOfContentConcernsAllNamesOfAFile) {
  ASSERT_EQ(files.make_directories("/workspace/d/e"), Errno::kSuccess);
  write("a", "one");
  ASSERT_EQ(files.link("/workspace/a", "/workspace/d/e/b"), Errno::kSuccess);
  const TreeState before = tree->state();
  ASSERT_EQ(files.link("/workspace/a", "/workspace/d/c"), Errno::kSuccess);
  const NodeRef file = open("a");
  ASSERT_TRUE(tree->write(*file.node, 0, as_bytes("two"), 5).ok());
  EXPECT_THAT(changes_since(before), ElementsAre("a", "d/c", "d/e/b"));
  ASSERT_EQ(files.remove("/workspace/a"), Errno::kSuccess);
  ASSERT_TRUE(tree->write(*file.node, 0, as_bytes("t"), 5).ok());
  EXPECT_THAT(changes_since(before), ElementsAre("a", "d/c", "d/e/b"));
}

TEST_F(TreeJournalTest, AFileWithoutANameIsNoChange) {
  write("a", "one");
  const NodeRef file = open("a");
  ASSERT_EQ(files.remove("/workspace/a"), Errno::kSuccess);
  const TreeState before = tree->state();
  ASSERT_TRUE(tree->write(*file.node, 0, as_bytes("two"), 5).ok());
  EXPECT_THAT(changes_since(before), IsEmpty());
}

TEST_F(TreeJournalTest, ARenamedFolderChangesWithAllThatIsInIt) {
  ASSERT_EQ(files.make_directories("/workspace/d/e"), Errno::kSuccess);
  write("d/e/f", "one");
  const TreeState before = tree->state();
  const NodeRef file = open("d/e/f");
  ASSERT_TRUE(tree->write(*file.node, 0, as_bytes("two"), 5).ok());
  ASSERT_EQ(files.rename("/workspace/d", "/workspace/x"), Errno::kSuccess);
  ASSERT_TRUE(tree->write(*file.node, 0, as_bytes("333"), 5).ok());
  ASSERT_EQ(files.rename("/workspace/x", "/workspace/y"), Errno::kSuccess);
  write("y/g", "new");
  EXPECT_THAT(changes_since(before), ElementsAre("d", "d/e", "d/e/f", "y", "y/e", "y/e/f", "y/g"));
  ASSERT_EQ(files.rename("/workspace/y", "/workspace/d"), Errno::kSuccess);
  EXPECT_THAT(changes_since(before), ElementsAre("d/e/f", "d/g"));
}

TEST_F(TreeJournalTest, TooMuchToNoteIsLookedAtAsAWhole) {
  write("untouched", "one");
  const TreeState before = tree->state();
  for (int i = 0; i < 20'000; ++i) {
    const std::string path = fmt::format("/workspace/{}{}", std::string(200, 'x'), i);
    ASSERT_EQ(files.write_file(path, {}), Errno::kSuccess);
    if (i == 0) continue;
    ASSERT_EQ(files.remove(path), Errno::kSuccess);
  }
  EXPECT_THAT(changes_since(before), ElementsAre(std::string(200, 'x') + "0"));
  EXPECT_EQ(before.entries().find("untouched"), tree->state().entries().find("untouched"))
      << "what is as it was is shared";
}

TEST_F(TreeJournalTest, AnUnchangedTreeIsNotLookedAt) {
  for (int i = 0; i < 10'000; ++i) write(fmt::format("{}", i), "text");
  const auto timed = [](const auto& look) {
    const std::clock_t start = std::clock();  // CPU time: what else the machine does is no cost
    look();
    return std::clock() - start;
  };
  (void)tree->state();
  const auto all = timed([&] { (void)TreeState::of(*tree); });
  const auto few = timed([&] {
    for (int i = 0; i < 10; ++i) {
      const TreeState before = tree->state();
      write("5000", std::to_string(i));
      EXPECT_EQ(before.changes_to(tree->state()).size(), 1U);
    }
  });
  EXPECT_LT(few, all) << "ten times";
}

/// Does anything that can be done to a tree, in few places, so that much of it meets.
class Actor {
 public:
  Actor(TreeJournalTest& test, unsigned seed) : test_(test), random_(seed) {}

  std::uint32_t below(std::uint32_t count) { return static_cast<std::uint32_t>(random_()) % count; }

  void act() {
    FileSystem& files = test_.files;
    ++test_.clocks.realtime;
    switch (below(14)) {
      case 0: (void)files.write_file(path(), as_bytes(text())); break;
      case 1: (void)files.make_directory(path()); break;
      case 2: (void)files.make_directories(path()); break;
      case 3: (void)files.remove_all(path()); break;
      case 4: (void)files.remove(path()); break;
      case 5:
      case 6: (void)files.rename(path(), path()); break;
      case 7: (void)files.symlink(std::to_string(below(4)), path()); break;
      case 8: (void)files.link(path(), path()); break;
      case 9: (void)files.truncate(path(), below(20)); break;
      case 10: open(); break;
      case 11: set_times(); break;
      default: write_to_open_file(); break;
    }
  }

 private:
  std::string text() { return std::to_string(random_()); }
  std::string path() {
    std::string result = "/workspace";
    for (std::uint32_t depth = 1 + below(4); depth > 0; --depth)
      result += "/" + std::to_string(below(4));
    return result;
  }
  void open() {
    auto opened = test_.files.open_at(test_.files.root(), path().substr(1), {.write = true});
    if (!opened.ok()) return;
    if (open_.size() < 4) open_.push_back(*std::move(opened));
    else open_[below(4)] = *std::move(opened);
  }
  void set_times() {
    const auto place = test_.files.find_at(test_.files.root(), path().substr(1), Follow::kNo);
    if (place.ok()) (void)test_.files.set_times(*place, {.accessed = {}, .modified = below(100)});
  }
  void write_to_open_file() {
    if (open_.empty()) return;
    Node& node = *open_[below(static_cast<std::uint32_t>(open_.size()))].node;
    if (node.type == FileType::kRegularFile)
      (void)test_.tree->write(node, below(10), as_bytes(text()), random_());
  }

  TreeJournalTest& test_;
  std::mt19937 random_;
  std::vector<NodeRef> open_;  // some of them without a name by now
};

TEST_F(TreeJournalTest, GivesWhatLookingAtEverythingGivesAfterAnything) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  Actor actor(*this, seed);
  for (int round = 0; round < 2'000; ++round) {
    for (std::uint32_t i = actor.below(12); i > 0; --i) actor.act();
    const TreeState before = tree->state();
    ASSERT_EQ(text_of(before), text_of(TreeState::of(*tree)));
    const std::vector<std::string> text = text_of(before);
    for (std::uint32_t i = actor.below(12); i > 0; --i) actor.act();
    const TreeState all = TreeState::of(*tree);
    const TreeState now = tree->state();
    ASSERT_EQ(text_of(now), text_of(all));
    ASSERT_EQ(text_of(before), text) << "a state stays as it is";
    ASSERT_EQ(before.changes_to(now), before.changes_to(all));
    if (round % 10 != 0) continue;
    ASSERT_EQ(before.restore(*tree, clocks.realtime_ns()), Errno::kSuccess);
    ASSERT_THAT(before.changes_to(tree->state()), IsEmpty());
  }
}

}  // namespace
}  // namespace sw::wasi
