// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What a tree does when memory runs out half way: every operation is tried with its first, second,
// third, … allocation failing, until it needs no more. Whatever happens, the tree's usage is what a
// walk counts, and an operation that failed has changed nothing.

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "base/test_allocations.h"
#include "sandbox_workers/wasi/tree.h"

namespace sw::wasi {
namespace {

constexpr std::uint64_t kNow = 1000;
// Too long to lie within a std::string.
constexpr std::string_view kLong = "a name that is too long to lie within the string object itself";

struct Facts {
  TreeUsage usage;
  std::map<std::string, std::string> entries;
};

/// What a walk finds, and what usage should be from that.
Facts facts_of(const Tree& tree) {
  Facts facts;
  std::map<const Node*, bool> counted;
  EXPECT_EQ(tree.walk([&](const std::string& path, Node& node) {
    ++facts.usage.entries;
    if (!counted[&node]) facts.usage.bytes += node.size();
    counted[&node] = true;
    std::string& entry = facts.entries[path];
    entry = node.target + "|" + std::to_string(node.links) + "|";
    if (node.type == FileType::kRegularFile) entry += as_text(node.content.view().value());
    return true;
  }),
            Errno::kSuccess);
  return facts;
}

class TreeMemory : public testing::Test {
 protected:
  TreeMemory() {
    folder_ = tree_.create(tree_.root(), "folder", FileType::kDirectory, kNow).value();
    other_ = tree_.create(tree_.root(), "other", FileType::kDirectory, kNow).value();
    file_ = tree_.create(*folder_, "file", FileType::kRegularFile, kNow).value();
    EXPECT_TRUE(tree_.write(*file_, 0, as_bytes("content"), kNow).ok());
    const auto victim = tree_.create(*other_, "victim", FileType::kRegularFile, kNow).value();
    EXPECT_TRUE(tree_.write(*victim, 0, as_bytes("victim"), kNow).ok());
  }

  /// Tries `work`, which returns whether it succeeded, until no allocation of its fails.
  void try_with_every_allocation_failing(const std::function<bool(Tree&)>& work) {
    for (int left = 0;; ++left) {
      ASSERT_LT(left, 100);
      const Facts before = facts_of(tree_);
      bool done = false;
      with_allocations(left, [&] { done = work(tree_); });
      const Facts after = facts_of(tree_);
      EXPECT_EQ(tree_.usage().bytes, after.usage.bytes) << "after " << left << " allocations";
      EXPECT_EQ(tree_.usage().entries, after.usage.entries) << "after " << left << " allocations";
      if (done) return;
      EXPECT_EQ(after.entries, before.entries) << "after " << left << " allocations";
    }
  }

  Tree tree_{{}, kNow};
  std::shared_ptr<Node> folder_;
  std::shared_ptr<Node> other_;
  std::shared_ptr<Node> file_;
};

TEST_F(TreeMemory, CreatingFails) {
  for (const FileType type : {FileType::kRegularFile, FileType::kDirectory}) {
    try_with_every_allocation_failing([&](Tree& tree) {
      return tree
          .create(*folder_, std::string(kLong) + static_cast<char>('0' + static_cast<int>(type)),
                  type, kNow)
          .ok();
    });
  }
}

TEST_F(TreeMemory, LinkingFails) {
  try_with_every_allocation_failing(
      [&](Tree& tree) { return tree.create_symlink(*folder_, kLong, kLong, kNow).ok(); });
  try_with_every_allocation_failing(
      [&](Tree& tree) { return tree.link(*other_, kLong, file_, kNow) == Errno::kSuccess; });
}

TEST_F(TreeMemory, WritingFails) {
  const std::string text(1000, 'x');
  for (const std::uint64_t offset : std::initializer_list<std::uint64_t>{0, 3, 7, 5000}) {
    try_with_every_allocation_failing(
        [&](Tree& tree) { return tree.write(*file_, offset, as_bytes(text), kNow).ok(); });
  }
}

TEST_F(TreeMemory, WritingAndResizingOfLentBytesFails) {
  const auto lent = file_->content.share().value();
  try_with_every_allocation_failing(
      [&](Tree& tree) { return tree.write(*file_, 9000, as_bytes("end"), kNow).ok(); });
  EXPECT_EQ(as_text(lent.bytes), "content");
  const auto lent_again = file_->content.share().value();
  try_with_every_allocation_failing(
      [&](Tree& tree) { return tree.resize(*file_, 20000, kNow) == Errno::kSuccess; });
  const auto lent_at_last = file_->content.share().value();
  try_with_every_allocation_failing(
      [&](Tree& tree) { return tree.resize(*file_, 2, kNow) == Errno::kSuccess; });
}

TEST_F(TreeMemory, ReplacingContentFails) {
  try_with_every_allocation_failing([&](Tree& tree) {
    return tree.set_content(*file_, Bytes(50, std::byte{'y'}), kNow) == Errno::kSuccess;
  });
}

TEST_F(TreeMemory, AFileWithoutANameFails) {
  std::shared_ptr<Node> made;
  const Bytes content(3000, std::byte{'z'});
  for (int left = 0; !made; ++left) {
    ASSERT_LT(left, 100);
    const std::uint64_t before = tree_.usage().bytes;
    with_allocations(left, [&] {
      if (auto file = tree_.create_unnamed_file(content, {}); file.ok()) made = *file;
    });
    EXPECT_EQ(tree_.usage().bytes, before + (made ? content.size() : 0));
  }
}

TEST_F(TreeMemory, RenamingFails) {
  const std::string name(kLong);
  try_with_every_allocation_failing([&](Tree& tree) {
    return tree.rename(*folder_, "file", *folder_, name, kNow) == Errno::kSuccess;
  });
  try_with_every_allocation_failing([&](Tree& tree) {
    return tree.rename(*folder_, name, *other_, name, kNow) == Errno::kSuccess;
  });
  // Over what has that name.
  try_with_every_allocation_failing([&](Tree& tree) {
    return tree.rename(*other_, name, *other_, "victim", kNow) == Errno::kSuccess;
  });
  try_with_every_allocation_failing([&](Tree& tree) {
    return tree.rename(tree.root(), "folder", *other_, name, kNow) == Errno::kSuccess;
  });
  EXPECT_EQ(folder_->parent, other_.get());
  EXPECT_EQ(tree_.root().links, 3U);
  EXPECT_EQ(other_->links, 3U);
  EXPECT_EQ(facts_of(tree_).entries.at("other/victim"), "|1|content");
}

}  // namespace
}  // namespace sw::wasi
