// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What is deleted, and what is collected.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <random>

#include "snapshot/page.h"
#include "snapshot/snapshot_store_fixture.h"

namespace sw::snapshot {
namespace {

TEST_F(SnapshotStoreTest, RemovedContextLeavesNothing) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  guest.write(5000, "secret");
  save(live, guest);
  must(store_->add_checkpoint("c", "here", 0));
  must(store_->remove("c"));
  EXPECT_EQ(pack_count(), 0U);
  EXPECT_FALSE(store_->has("c"));
  EXPECT_EQ(store_->remove("c").error().code, ErrorCode::kNotFound);
  restart({});
  EXPECT_TRUE(store_->contexts().empty());
  LiveMemory again = must(store_->begin("c", kBuild));
  Guest fresh(image_);
  save(again, fresh);
  EXPECT_EQ(load("c").guest.memory(), image_);
}

TEST_F(SnapshotStoreTest, RemovedSourceOfAForkLeavesOnlyWhatTheForkNeeds) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  guest.write(5000, "shared");
  save(live, guest);
  must(store_->fork("c", {}, "f", 0));
  for (int i = 0; i < 20; ++i) {
    guest.write(9000, "only the source's " + std::to_string(i));
    save(live, guest);
  }
  const Bytes shared = load("f").guest.memory();
  must(store_->remove("c"));
  EXPECT_EQ(pack_count(), 2U);
  EXPECT_EQ(load("f").guest.memory(), shared);
  must(store_->remove("f"));
  EXPECT_EQ(pack_count(), 0U);
}

TEST_F(SnapshotStoreTest, GarbageIsCollectedWhileSaving) {
  restart({.history = {.full = 20, .every = 0}});
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  std::size_t most = 0;
  for (int i = 0; i < 1000; ++i) {
    guest.write(5000, "x = " + std::to_string(i));
    guest.write(20 * kPageBytes, "y = " + std::to_string(i * i));
    save(live, guest);
    most = std::max(most, pack_count());
  }
  EXPECT_GT(must(store_->stats()).collections, 5U);
  EXPECT_LT(most, 200U);
  EXPECT_EQ(load("c").guest.memory(), guest.memory());
  must(store_->collect());
  EXPECT_LT(pack_count(), 60U);
  EXPECT_EQ(load("c").guest.memory(), guest.memory());
}

TEST_F(SnapshotStoreTest, OlderStepsThatAreKeptNeedOnlyPacksOfKeySteps) {
  restart({.history = {.full = 20, .every = 10}});
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  std::map<std::uint64_t, Bytes> memories;
  for (std::uint64_t step = 1; step <= 300; ++step) {
    for (const std::size_t page : {std::size_t{1}, std::size_t{20}, step % 40})
      guest.write(page * kPageBytes + 50, "step " + std::to_string(step));
    save(live, guest);
    memories[step] = guest.memory();
  }
  must(store_->collect());
  const auto history = must(store_->history("c"));
  EXPECT_EQ(history.size(), 49U);  // 1, 10, 20, … 280, and 281 to 300
  EXPECT_LE(pack_count(), history.size() + 10);
  for (const HistoryEntry& entry : history) {
    const Loaded loaded = load("c", entry.version);
    EXPECT_EQ(loaded.guest.memory(), memories.at(entry.step)) << entry.step;
    EXPECT_LT(loaded.restored.packs_read, 40U) << entry.step;
  }
}

/// A storage that counts what is read from it.
class CountingStorage final : public storage::ObjectStorage {
 public:
  explicit CountingStorage(storage::ObjectStorage& under) : under_(under) {}
  const storage::ObjectName& name() const override { return under_.name(); }
  std::uint64_t generation() const override { return under_.generation(); }
  bool lost() const override { return under_.lost(); }
  bool may_miss_changes() const override { return under_.may_miss_changes(); }
  bool is_beside(const storage::ObjectStorage& other) const override {
    return under_.is_beside(other);
  }
  Result<void> transact(const storage::TransactionBody& body,
                        storage::CommitOptions options) override {
    return under_.transact(body, std::move(options));
  }
  Result<void> destroy() override { return under_.destroy(); }
  Result<void> read(const std::function<Result<void>(storage::Reader&)>& body) override {
    return under_.read([&](storage::Reader& reader) {
      Counter counter(reader, rows);
      return body(counter);
    });
  }

  std::size_t rows = 0;

 private:
  class Counter final : public storage::Reader {
   public:
    Counter(storage::Reader& under, std::size_t& rows) : under_(under), rows_(rows) {}
    Result<std::optional<Bytes>> get(storage::TableId table, std::string_view key) override {
      ++rows_;
      return under_.get(table, key);
    }
    Result<void> scan(const storage::Range& range, storage::Order order,
                      const storage::RowCallback& each) override {
      return under_.scan(range, order, [&](std::string_view key, BytesView row) {
        ++rows_;
        return each(key, row);
      });
    }
    Result<void> scan_keys(const storage::Range& range, storage::Order order,
                           const storage::KeyCallback& each) override {
      return under_.scan_keys(range, order, [&](std::string_view key, std::size_t bytes) {
        ++rows_;
        return each(key, bytes);
      });
    }
    Result<std::optional<storage::Time>> alarm() override { return under_.alarm(); }

   private:
    storage::Reader& under_;
    std::size_t& rows_;
  };

  storage::ObjectStorage& under_;
};

TEST_F(SnapshotStoreTest, StepReadsAsFewRowsAfterAThousandStepsAsAfterAHundred) {
  CountingStorage counting(*object_);
  store_ = must(SnapshotStore::open(counting, {}));
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  const auto rows_of_steps = [&](int steps) {
    counting.rows = 0;
    for (int i = 0; i < steps; ++i) {
      guest.write(5000, "x = " + std::to_string(++written_));
      save(live, guest);
      must(store_->usage("c"));
    }
    return counting.rows;
  };
  rows_of_steps(100);
  const std::size_t early = rows_of_steps(400);
  rows_of_steps(500);
  const std::size_t late = rows_of_steps(400);
  EXPECT_LT(late, early + early / 2);
  EXPECT_LT(late, 400U * 30);
  store_.reset();  // before its storage
}

TEST_F(SnapshotStoreTest, RestoreReadsFewPacksAfterManyScatteredSteps) {
  image_ = make_image(2000);
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  for (std::size_t i = 0; i < 2000; ++i) {
    guest.write(i * kPageBytes + 10, "once");
    guest.write(5, std::to_string(i));
    const auto ranges = std::vector<ByteRange>{{0, 10}, {i * kPageBytes + 10, i * kPageBytes + 14}};
    must(store_->save(
        live, must(live.encode({.memory = SpanPageSource(guest.memory()),
                                .image = image_,
                                .changed = i == 0 ? std::span(ranges).first(1) : std::span(ranges),
                                .host_tables = {}}))));
  }
  const Loaded loaded = load("c");
  EXPECT_LT(loaded.restored.packs_read, 110U);
}

TEST_F(SnapshotStoreTest, LargePackWithFewNeededPagesIsPruned) {
  restart({.history = {.full = 0, .every = 0}, .collect_while_saving = false});
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  std::mt19937 random(3);
  const auto noise = [&](std::size_t pages) {
    std::string text(pages * kPageBytes, ' ');
    for (char& c : text) c = static_cast<char>(random());
    return text;
  };
  guest.grow_to(400 * kPageBytes);
  guest.write(100 * kPageBytes, noise(200));
  save(live, guest);
  guest.write(100 * kPageBytes, noise(190));
  save(live, guest);
  save(live, guest);
  const std::uint64_t before = must(store_->stats()).pack_bytes;
  must(store_->collect());
  EXPECT_LT(must(store_->stats()).pack_bytes, before - 150 * kPageBytes);
  EXPECT_EQ(load("c").guest.memory(), guest.memory());
}

}  // namespace
}  // namespace sw::snapshot
