// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/journal/journal.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "storage/sqlite/faulty_disk.h"
#include "storage/sqlite/sqlite_fixture.h"

namespace sw::storage {
namespace {

class TestRecord final : public CommitRecord {
 public:
  TestRecord(std::vector<Part> parts, Durability durability, bool frees_space)
      : CommitRecord(std::move(parts), durability, frees_space) {}
  bool is_valid() const override { return true; }
  void failed() override { failures += 1; }
  std::atomic<int> failures = 0;
};

class JournalTest : public testing::Test {
 protected:
  JournalTest() { reopen(); }

  void reopen() {
    journal_.reset();
    recovered_.clear();
    auto opened =
        Journal::open({.paths = {folder_.path() / "journal.0", folder_.path() / "journal.1"},
                       .vfs = disk_.name(),
                       .waiting = [this] { return waiting_.load(); }},
                      [this](const JournalContent& content) {
                        for (const Frame& frame : content.frames) {
                          for (const FramePart& part : frame.parts)
                            recovered_.push_back(*part.rows);
                        }
                      });
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    journal_ = *std::move(opened);
  }

  Result<std::unique_ptr<PendingCommit>> add(const std::string& key,
                                             Durability durability = Durability::kCommit,
                                             bool frees_space = false) {
    auto rows = std::make_shared<const Rows>(
        Rows{{{1, key}, std::make_shared<const Bytes>(Bytes(100, std::byte{1}))}});
    return journal_->add(std::make_shared<TestRecord>(
        std::vector<CommitRecord::Part>{{layer_, std::move(rows)}}, durability, frees_space));
  }

  Result<void> commit(const std::string& key, bool frees_space = false) {
    SW_TRY(const auto pending, add(key, Durability::kCommit, frees_space));
    return pending->wait();
  }

  std::string keys() const {
    std::string text;
    for (const Rows& rows : recovered_) {
      for (const auto& [name, value] : rows) text += name.second + " ";
    }
    return text;
  }

  const TemporaryDirectory folder_ = temporary();
  FaultyDisk disk_;
  std::atomic<std::size_t> waiting_ = 0;
  const LayerPtr layer_ = std::make_shared<Layer>(1, nullptr);
  std::vector<Rows> recovered_;
  std::unique_ptr<Journal> journal_;
};

TEST_F(JournalTest, GivesBackWhatWasCommittedInOrder) {
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(commit(key).ok());
  reopen();
  EXPECT_EQ(keys(), "a b c ");
  ASSERT_TRUE(commit("d").ok());
  reopen();
  EXPECT_EQ(keys(), "a b c d ");
}

TEST_F(JournalTest, SyncsOnceForAllWhoWait) {
  ASSERT_TRUE(commit("first").ok());
  const std::uint64_t before = disk_.changes();
  std::vector<std::unique_ptr<PendingCommit>> pending;
  for (int i = 0; i < 20; ++i) pending.push_back(*add(std::to_string(i)));
  for (const auto& one : pending) ASSERT_TRUE(one->wait().ok());
  EXPECT_EQ(disk_.changes() - before, 2U);  // a write and a sync
}

TEST_F(JournalTest, WaitsForOthersWhileManyWaitForAProcessor) {
  ASSERT_TRUE(commit("first").ok());
  waiting_ = 50;
  const std::uint64_t before = disk_.changes();
  constexpr int kThreads = 12;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) EXPECT_TRUE(commit(std::to_string(t)).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(disk_.changes() - before, 2U * kThreads * 20 / 4);
}

TEST_F(JournalTest, WritesRelaxedChangesByItself) {
  const auto pending = add("relaxed", Durability::kRelaxed);
  ASSERT_TRUE((*pending)->wait().ok());
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (journal_->bytes() == 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::yield();
  EXPECT_GT(journal_->bytes(), 0U);
}

TEST_F(JournalTest, WritesWhatIsLeftAtItsEnd) {
  ASSERT_TRUE(add("relaxed", Durability::kRelaxed).ok());
  reopen();
  EXPECT_EQ(keys(), "relaxed ");
}

TEST_F(JournalTest, FilesTakeTurns) {
  ASSERT_TRUE(commit("a").ok());
  ASSERT_TRUE(journal_->switch_files());
  ASSERT_TRUE(commit("b").ok());
  EXPECT_FALSE(journal_->switch_files());  // the other is still needed
  reopen();
  EXPECT_EQ(keys(), "a b ");
  ASSERT_TRUE(journal_->other_file_needed());
  ASSERT_TRUE(journal_->cut().ok());
  ASSERT_TRUE(journal_->switch_files());
  ASSERT_TRUE(commit("c").ok());
  ASSERT_TRUE(journal_->cut().ok());
  reopen();
  EXPECT_EQ(keys(), "c ");
}

TEST_F(JournalTest, GoesOnAfterADiskThatWasFull) {
  ASSERT_TRUE(commit("a").ok());
  disk_.fail_from(1);
  const auto first = *add("lost");
  const auto second = *add("lost too");
  EXPECT_EQ(first->wait().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(second->wait().error().code, ErrorCode::kUnavailable);
  disk_.fail_from(1'000'000);
  ASSERT_TRUE(commit("b").ok());
  reopen();
  EXPECT_EQ(keys(), "a b ");
}

TEST_F(JournalTest, AfterASyncThatFailedNothingIsCommittedAnyMore) {
  ASSERT_TRUE(commit("a").ok());
  disk_.fail_from(2);  // the write works
  EXPECT_EQ(commit("unknown").error().code, ErrorCode::kUnavailable);
  disk_.fail_from(1'000'000);
  EXPECT_EQ(commit("b").error().code, ErrorCode::kUnavailable);
  reopen();
  ASSERT_TRUE(commit("c").ok());
}

}  // namespace
}  // namespace sw::storage
