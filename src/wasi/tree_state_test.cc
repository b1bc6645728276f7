// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasi/tree_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "sandbox_workers/wasi/clocks.h"
#include "sandbox_workers/wasi/file_system.h"

namespace sw::wasi {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct TreeStateTest : ::testing::Test {
  SystemClocks clocks;
  std::shared_ptr<Tree> tree = std::make_shared<Tree>(TreeLimits{}, clocks.realtime_ns());
  FileSystem files{standard_layout().build(), clocks};

  TreeStateTest() { files.mount(kWorkspaceMount, tree); }

  void write(std::string_view path, std::string_view text) {
    ASSERT_EQ(files.write_file(std::string("/workspace/").append(path), as_bytes(text)),
              Errno::kSuccess);
  }
  std::string read(std::string_view path) {
    const auto bytes = files.read_file(std::string("/workspace/").append(path));
    return bytes.ok() ? std::string(as_text(bytes->bytes)) : std::string(errno_name(bytes.error()));
  }
  void restore(const TreeState& state) {
    ASSERT_EQ(state.restore(*tree, clocks.realtime_ns()), Errno::kSuccess);
    EXPECT_THAT(state.changes_to(TreeState::of(*tree)), IsEmpty());
  }
};

TEST_F(TreeStateTest, PutsBackWhatWasChangedRemovedAndMade) {
  ASSERT_EQ(files.make_directories("/workspace/d/empty"), Errno::kSuccess);
  write("a", "one");
  write("d/b", "two");
  ASSERT_EQ(files.symlink("a", "/workspace/link"), Errno::kSuccess);
  const TreeState before = TreeState::of(*tree);
  write("a", "changed");
  ASSERT_EQ(files.remove_all("/workspace/d"), Errno::kSuccess);
  write("d", "now a file");
  ASSERT_EQ(files.remove("/workspace/link"), Errno::kSuccess);
  ASSERT_EQ(files.make_directories("/workspace/link/deep"), Errno::kSuccess);
  write("new", "x");
  restore(before);
  EXPECT_EQ(read("a"), "one");
  EXPECT_EQ(read("d/b"), "two");
  EXPECT_EQ(files.read_link("/workspace/link").value(), "a");
  EXPECT_EQ(read("new"), "ENOENT");
  EXPECT_TRUE(files.stat("/workspace/d/empty").ok());
}

TEST_F(TreeStateTest, AnOverwriteInPlaceIsSeenAndUndone) {
  write("a", "0123456789");
  const TreeState before = TreeState::of(*tree);
  const NodeRef node = files.open_at(files.root(), "workspace/a", {.write = true}).value();
  ASSERT_TRUE(tree->write(*node.node, 3, as_bytes("XYZ"), clocks.realtime_ns()).ok());
  EXPECT_EQ(read("a"), "012XYZ6789");
  EXPECT_THAT(before.changes_to(TreeState::of(*tree)),
              ElementsAre(Change{Change::Kind::kModified, FileType::kRegularFile, "a"}));
  restore(before);
  EXPECT_EQ(read("a"), "0123456789");
  // Who has the file open still has it open.
  ASSERT_TRUE(tree->write(*node.node, 0, as_bytes("!"), clocks.realtime_ns()).ok());
  EXPECT_EQ(read("a"), "!123456789");
}

TEST_F(TreeStateTest, ARestoreAfterRandomChangesLeavesNoDifference) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto path = [&] {
    std::string result = "/workspace";
    for (auto depth = 1 + random() % 3; depth > 0; --depth)
      result += "/" + std::to_string(random() % 4);
    return result;
  };
  const auto change = [&] {
    switch (random() % 6) {
      case 0: (void)files.write_file(path(), as_bytes(std::to_string(random()))); break;
      case 1: (void)files.make_directory(path()); break;
      case 2: (void)files.remove_all(path()); break;
      case 3: (void)files.rename(path(), path()); break;
      case 4: (void)files.symlink(std::to_string(random() % 4), path()); break;
      default: (void)files.truncate(path(), random() % 20); break;
    }
  };
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 20; ++i) change();
    const TreeState before = TreeState::of(*tree);
    const TreeUsage usage = tree->usage();
    for (int i = 0; i < 30; ++i) change();
    restore(before);
    EXPECT_EQ(tree->usage().entries, usage.entries);
    if (HasFailure()) return;
  }
}

TEST_F(TreeStateTest, ComesBackFromWhatItIsWrittenAs) {
  ASSERT_EQ(files.make_directories("/workspace/d/empty"), Errno::kSuccess);
  write("d/b", std::string("two\0", 4));
  write("zero", "");
  ASSERT_EQ(files.symlink("../x", "/workspace/link"), Errno::kSuccess);
  const TreeState before = TreeState::of(*tree);
  const auto after = TreeState::parse(before.serialize());
  ASSERT_TRUE(after.ok()) << after.error().message;
  EXPECT_THAT(before.changes_to(*after), IsEmpty());
  EXPECT_EQ(after->entries().find("d/b")->times, before.entries().find("d/b")->times);
  Tree other(TreeLimits{}, 1);
  ASSERT_EQ(after->restore(other, 2), Errno::kSuccess);
  EXPECT_THAT(before.changes_to(TreeState::of(other)), IsEmpty());
}

TEST_F(TreeStateTest, DamagedBytesAreRefusedOrHarmless) {
  ASSERT_EQ(files.make_directories("/workspace/d"), Errno::kSuccess);
  write("d/b", "two");
  const Bytes good = TreeState::of(*tree).serialize();
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(TreeState::parse(BytesView(good).first(size)).error().code, ErrorCode::kCorrupt)
        << size;
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const int value : {0x00, 0x2E, 0x2F, 0xFF}) {
      Bytes bad = good;
      bad[at] = static_cast<std::byte>(value);
      const auto parsed = TreeState::parse(bad);
      Tree other(TreeLimits{}, 1);
      if (parsed.ok()) (void)parsed->restore(other, 2);
    }
  }
}

}  // namespace
}  // namespace sw::wasi
