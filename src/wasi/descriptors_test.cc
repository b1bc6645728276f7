// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasi/descriptors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "wasi/test_support.h"

namespace sw::wasi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t kOpenMax = 8;

class DescriptorTest : public FileSystemTest {
 protected:
  DescriptorTest() { EXPECT_EQ(table_.open_standard(files(), {{"/", "/"}}), Errno::kSuccess); }

  std::uint32_t open(std::string_view path, const OpenFlags& flags = {}) {
    return open_at(workspace(), path, flags);
  }
  std::uint32_t open_at(const Place& at, std::string_view path, const OpenFlags& flags = {}) {
    auto file = std::make_shared<OpenFile>();
    file->at = files().open_at(at, path, flags).value();
    file->base = rights::kFile;
    return table_.insert(std::move(file)).value();
  }

  /// Another instance with the same workspace, which got our descriptors.
  struct Restored {
    FileSystem files;
    DescriptorTable table{kOpenMax};
  };
  std::unique_ptr<Restored> restore(BytesView blob) {
    auto restored =
        std::make_unique<Restored>(Restored{FileSystem(standard_layout().build(), clocks_)});
    restored->files.mount(kWorkspaceMount, workspace_);
    const auto done = restored->table.deserialize(blob, restored->files);
    EXPECT_TRUE(done.ok()) << done.error().message;
    return restored;
  }

  static std::string content(const OpenFile& file) {
    return std::string(as_text(file.at.node->content.view().value()));
  }

  DescriptorTable table_{kOpenMax};
};

TEST_F(DescriptorTest, StartsWithStreamsAndPreopens) {
  EXPECT_EQ(table_.open_count(), 4U);
  EXPECT_EQ(table_.find(0)->device, Device::kStdin);
  EXPECT_EQ(table_.find(2)->device, Device::kStderr);
  EXPECT_EQ(table_.find(3)->preopen, "/");
  EXPECT_EQ(table_.find(4), nullptr);
  EXPECT_EQ(table_.open_standard(files(), {{"x", "/none"}}), Errno::kNoent);
  EXPECT_EQ(table_.open_standard(files(), {{"x", "/dev/null"}}), Errno::kNotdir);
}

TEST_F(DescriptorTest, GivesTheLowestFreeNumber) {
  ASSERT_EQ(write("/workspace/f", ""), Errno::kSuccess);
  EXPECT_EQ(open("f"), 4U);
  EXPECT_EQ(open("f"), 5U);
  EXPECT_EQ(table_.close(4), Errno::kSuccess);
  EXPECT_EQ(table_.close(4), Errno::kBadf);
  EXPECT_EQ(table_.close(99), Errno::kBadf);
  EXPECT_EQ(open("f"), 4U);
}

TEST_F(DescriptorTest, OpensAsManyAsItsLimit) {
  ASSERT_EQ(write("/workspace/f", ""), Errno::kSuccess);
  while (table_.open_count() < kOpenMax - 1) open("f");
  EXPECT_FALSE(table_.full());
  open("f");
  EXPECT_TRUE(table_.full());
  EXPECT_EQ(table_.insert(std::make_shared<OpenFile>()).error(), Errno::kMfile);
  EXPECT_EQ(table_.duplicate(0).error(), Errno::kMfile);
  EXPECT_EQ(table_.close(5), Errno::kSuccess);
  EXPECT_EQ(open("f"), 5U);
}

TEST_F(DescriptorTest, RenumberMovesOntoAnOpenNumber) {
  ASSERT_EQ(write("/workspace/f", ""), Errno::kSuccess);
  const std::uint32_t f = open("f");
  EXPECT_EQ(table_.renumber(f, 7), Errno::kBadf);
  EXPECT_EQ(table_.renumber(7, f), Errno::kBadf);
  EXPECT_EQ(table_.renumber(f, f), Errno::kSuccess);
  EXPECT_EQ(table_.renumber(f, 1), Errno::kSuccess);
  EXPECT_EQ(table_.find(f), nullptr);
  EXPECT_FALSE(table_.find(1)->is_stream());
  EXPECT_EQ(table_.open_count(), 4U);
}

TEST_F(DescriptorTest, KeptPreopensCannotBeClosedOrReplaced) {
  table_.keep_preopens(1);
  const std::uint32_t copy = table_.duplicate(3).value();
  EXPECT_EQ(table_.close(3), Errno::kBadf);
  EXPECT_EQ(table_.renumber(copy, 3), Errno::kBadf);
  EXPECT_EQ(table_.renumber(3, 1), Errno::kBadf);
  EXPECT_EQ(table_.find(3)->preopen, "/");
  EXPECT_EQ(table_.close(copy), Errno::kSuccess);
}

TEST_F(DescriptorTest, OpensTheStreamsThatWereClosedAndNoOthers) {
  ASSERT_EQ(write("/workspace/f", ""), Errno::kSuccess);
  ASSERT_EQ(table_.renumber(open("f"), 2), Errno::kSuccess);
  ASSERT_EQ(table_.close(0), Errno::kSuccess);
  ASSERT_EQ(table_.close(1), Errno::kSuccess);
  table_.reopen_streams();
  EXPECT_EQ(table_.find(0)->device, Device::kStdin);
  EXPECT_EQ(table_.find(1)->device, Device::kStdout);
  EXPECT_FALSE(table_.find(2)->is_stream());
  EXPECT_EQ(table_.open_count(), 4U);
}

TEST_F(DescriptorTest, DuplicatesShareOnePosition) {
  ASSERT_EQ(write("/workspace/f", "abc"), Errno::kSuccess);
  const std::uint32_t f = open("f");
  const std::uint32_t g = table_.duplicate(f).value();
  table_.find(f)->position = 2;
  EXPECT_EQ(table_.find(g)->position, 2U);
  const auto restored = restore(table_.serialize(files()).value());
  restored->table.find(g)->position = 1;
  EXPECT_EQ(restored->table.find(f)->position, 1U);
}

TEST_F(DescriptorTest, AHalfWrittenFileGoesOnAfterARestore) {
  ASSERT_EQ(files().make_directory("/workspace/d"), Errno::kSuccess);
  const std::uint32_t f = open("d/log", {.create = true});
  OpenFile& file = *table_.find(f);
  ASSERT_TRUE(file.at.tree->write(*file.at.node, 0, as_bytes("one\n"), 1).ok());
  file.position = 4;
  file.flags = fdflags::kAppend | fdflags::kSync;
  file.base = rights::kFdRead | rights::kFdWrite;
  ASSERT_EQ(table_.close(0), Errno::kSuccess);
  const Bytes blob = table_.serialize(files()).value();
  const auto restored = restore(blob);
  const OpenFile& again = *restored->table.find(f);
  EXPECT_EQ(again.at.node.get(), file.at.node.get());
  EXPECT_EQ(again.position, 4U);
  EXPECT_EQ(again.flags, fdflags::kAppend | fdflags::kSync);
  EXPECT_EQ(again.base, rights::kFdRead | rights::kFdWrite);
  EXPECT_EQ(restored->table.find(0), nullptr);
  EXPECT_EQ(restored->table.find(1)->device, Device::kStdout);
  EXPECT_EQ(restored->table.find(3)->preopen, "/");
  EXPECT_EQ(restored->table.find(3)->inheriting, rights::kDirectoryInheriting);
  EXPECT_EQ(restored->table.open_count(), 4U);
  EXPECT_EQ(restored->table.serialize(restored->files).value(), blob);
}

TEST_F(DescriptorTest, FilesOfTheLayoutAndTheMountsThemselvesAreFoundAgain) {
  auto null = std::make_shared<OpenFile>();
  null->at = files().open_at(root(), "dev/null", {}).value();
  const std::uint32_t n = table_.insert(std::move(null)).value();
  const std::uint32_t w = open(".");
  const auto restored = restore(table_.serialize(files()).value());
  EXPECT_EQ(restored->table.find(n)->at.node->device, Device::kNull);
  EXPECT_EQ(restored->table.find(w)->at.node.get(), &workspace_->root());
}

TEST_F(DescriptorTest, AnUnlinkedFileIsCarriedInTheBlobOnceForAllWhoHaveItOpen) {
  ASSERT_EQ(write("/workspace/f", "content"), Errno::kSuccess);
  const std::uint32_t f = open("f");
  const std::uint32_t g = open("f");
  ASSERT_EQ(files().remove("/workspace/f"), Errno::kSuccess);
  const Bytes blob = table_.serialize(files()).value();
  table_.close_all();
  EXPECT_EQ(workspace_->usage().bytes, 0U);
  const auto restored = restore(blob);
  EXPECT_EQ(content(*restored->table.find(f)), "content");
  EXPECT_EQ(restored->table.find(f)->at.node, restored->table.find(g)->at.node);
  EXPECT_EQ(restored->table.find(f)->at.node->links, 0U);
  EXPECT_EQ(workspace_->usage().bytes, 7U);
  EXPECT_FALSE(restored->files.exists("/workspace/f"));
}

TEST_F(DescriptorTest, AnUnlinkedFileMustStillFit) {
  ASSERT_EQ(write("/workspace/f", "content"), Errno::kSuccess);
  open("f");
  ASSERT_EQ(files().remove("/workspace/f"), Errno::kSuccess);
  const Bytes blob = table_.serialize(files()).value();
  table_.close_all();
  workspace_->set_limits({.tree_bytes_max = 6});
  DescriptorTable other(kOpenMax);
  EXPECT_EQ(other.deserialize(blob, files()).error().code, ErrorCode::kLimitExceeded);
  EXPECT_EQ(other.open_count(), 0U);
  EXPECT_EQ(workspace_->usage().bytes, 0U);
}

TEST_F(DescriptorTest, FilesOpenedThroughAnAliasAreThereAgain) {
  ASSERT_EQ(write("/workspace/f", "abc"), Errno::kSuccess);
  ASSERT_EQ(write("/workspace/gone", "unnamed"), Errno::kSuccess);
  const std::uint32_t f = open_at(root(), "home/user/f");
  const std::uint32_t same = open("f");
  const std::uint32_t gone = open_at(root(), "home/user/gone");
  const std::uint32_t folder = open_at(root(), "home/user");
  ASSERT_EQ(files().remove("/home/user/gone"), Errno::kSuccess);
  const auto restored = restore(table_.serialize(files()).value());
  EXPECT_EQ(content(*restored->table.find(f)), "abc");
  EXPECT_EQ(restored->table.find(f)->at.node, restored->table.find(same)->at.node);
  EXPECT_EQ(content(*restored->table.find(gone)), "unnamed");
  EXPECT_EQ(restored->table.find(folder)->at.node.get(), &workspace_->root());
}

TEST_F(DescriptorTest, AListingInProgressGoesOnInARebuiltDirectory) {
  for (const char* name : {"/workspace/a", "/workspace/b", "/workspace/c"})
    ASSERT_EQ(write(name, ""), Errno::kSuccess);
  ASSERT_EQ(files().remove("/workspace/a"), Errno::kSuccess);  // the orders are 1 and 2 now
  const std::uint32_t d = open(".");
  const Bytes blob = table_.serialize(files()).value();
  // Restored from a list of paths, in another order and with a newer file.
  workspace_ = std::make_shared<Tree>(TreeLimits{}, 1);
  files_->mount(kWorkspaceMount, workspace_);
  for (const char* name : {"/workspace/new", "/workspace/c", "/workspace/b"})
    ASSERT_EQ(write(name, ""), Errno::kSuccess);
  const auto restored = restore(blob);
  std::vector<std::string> rest;
  EXPECT_EQ(restored->table.find(d)->at.node->directory->for_each(
                2,
                [&](std::string_view name, const auto&) {
                  rest.emplace_back(name);
                  return true;
                }),
            Errno::kSuccess);
  EXPECT_THAT(rest, ElementsAre("c", "new"));
}

TEST_F(DescriptorTest, ADirectoryThatIsOpenTwiceIsListedOnce) {
  const std::string name(200, 'n');
  ASSERT_EQ(write("/workspace/" + name, ""), Errno::kSuccess);
  open(".");
  const std::size_t once = table_.serialize(files())->size();
  open(".");
  EXPECT_LT(table_.serialize(files())->size(), once + 100);
}

TEST_F(DescriptorTest, WhatIsGoneOrOfAnotherTypeIsStale) {
  ASSERT_EQ(write("/workspace/gone", ""), Errno::kSuccess);
  ASSERT_EQ(write("/workspace/changed", ""), Errno::kSuccess);
  ASSERT_EQ(write("/workspace/replaced", "old"), Errno::kSuccess);
  ASSERT_EQ(files().make_directory("/workspace/removed"), Errno::kSuccess);
  const std::uint32_t gone = open("gone");
  const std::uint32_t changed = open("changed");
  const std::uint32_t replaced = open("replaced");
  const std::uint32_t removed = open("removed");
  ASSERT_EQ(files().remove("/workspace/removed"), Errno::kSuccess);
  const Bytes blob = table_.serialize(files()).value();
  ASSERT_EQ(files().remove("/workspace/gone"), Errno::kSuccess);
  ASSERT_EQ(files().remove("/workspace/changed"), Errno::kSuccess);
  ASSERT_EQ(files().make_directory("/workspace/changed"), Errno::kSuccess);
  ASSERT_EQ(files().remove("/workspace/replaced"), Errno::kSuccess);
  ASSERT_EQ(write("/workspace/replaced", "new"), Errno::kSuccess);
  const auto restored = restore(blob);
  EXPECT_TRUE(restored->table.find(gone)->stale);
  EXPECT_TRUE(restored->table.find(changed)->stale);
  EXPECT_TRUE(restored->table.find(removed)->stale);
  EXPECT_FALSE(restored->table.find(replaced)->stale);
  EXPECT_EQ(content(*restored->table.find(replaced)), "new");
  EXPECT_EQ(restored->table.close(gone), Errno::kSuccess);
  EXPECT_TRUE(
      restore(restored->table.serialize(restored->files).value())->table.find(changed)->stale);
}

TEST_F(DescriptorTest, OpenFilesSurviveWhileTheWorkspaceIsDisabled) {
  ASSERT_EQ(write("/workspace/f", "x"), Errno::kSuccess);
  const std::uint32_t f = open("f");
  workspace_->set_disabled(true);
  const auto restored = restore(table_.serialize(files()).value());
  EXPECT_FALSE(restored->table.find(f)->stale);
}

class HostileBlob : public DescriptorTest {
 protected:
  HostileBlob() {
    EXPECT_EQ(write("/workspace/f", "content"), Errno::kSuccess);
    EXPECT_EQ(write("/workspace/u", "unlinked"), Errno::kSuccess);
    open("f");
    open("u");
    open(".");
    EXPECT_EQ(files().remove("/workspace/u"), Errno::kSuccess);
    blob_ = table_.serialize(files()).value();
  }
  Bytes blob_;
};

TEST_F(HostileBlob, CutShortAnywhereIsRefusedAndChangesNothing) {
  for (std::size_t size = 0; size < blob_.size(); ++size) {
    const auto done = table_.deserialize(BytesView(blob_).first(size), files());
    ASSERT_FALSE(done.ok()) << size;
    EXPECT_EQ(done.error().code, ErrorCode::kCorrupt) << size;
    EXPECT_EQ(table_.open_count(), 7U);
  }
  Bytes longer = blob_;
  longer.push_back(std::byte{0});
  EXPECT_EQ(table_.deserialize(longer, files()).error().code, ErrorCode::kCorrupt);
}

TEST_F(HostileBlob, AnotherVersionIsRefused) {
  blob_[4] = std::byte{2};
  const auto done = table_.deserialize(blob_, files());
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.error().message, HasSubstr("version 2"));
}

TEST_F(HostileBlob, TooManyDescriptorsAreRefused) {
  table_.set_open_max(6);
  EXPECT_EQ(table_.deserialize(blob_, files()).error().code, ErrorCode::kLimitExceeded);
  table_.set_open_max(7);
  EXPECT_TRUE(table_.deserialize(blob_, files()).ok());
}

TEST_F(HostileBlob, DamagedBytesAreRefusedOrGiveATableWithinItsLimits) {
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  for (int i = 0; i < 20'000; ++i) {
    Bytes bad = blob_;
    for (std::size_t changes = 1 + random() % 3; changes > 0; --changes) {
      bad[random() % bad.size()] = static_cast<std::byte>(random());
    }
    DescriptorTable table(kOpenMax);
    if (!table.deserialize(bad, files()).ok()) {
      ASSERT_EQ(table.open_count(), 0U) << "seed " << seed;
      continue;
    }
    ASSERT_LE(table.open_count(), kOpenMax) << "seed " << seed;
    for (std::uint32_t fd = 0; fd < 64; ++fd) {
      const OpenFile* const file = table.find(fd);
      if (!file) continue;
      ASSERT_LE(file->flags, fdflags::kAll) << "seed " << seed;
      ASSERT_EQ((file->base | file->inheriting) & ~rights::kAll, 0U) << "seed " << seed;
      ASSERT_TRUE(file->stale || file->at.node || file->device != Device::kNone) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace sw::wasi
