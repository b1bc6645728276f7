// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Restoring a memory of which most is left out until somebody asks for it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "snapshot/catalog.h"
#include "snapshot/snapshot_store_fixture.h"

namespace sw::snapshot {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kPages = 3000;  // several regions of 256 beyond the image's 64

/// A memory that knows which of its pages are there.
class PartialMemory final : public PageSink, public PageSource {
 public:
  PartialMemory(const Bytes& image, std::uint64_t bytes) : memory_(bytes) {
    std::ranges::copy(image, memory_.begin());
  }

  LeaveOut leave_out() {
    return [this](std::span<const ByteRange> parts) {
      for (const ByteRange& part : parts) {
        for (std::size_t at = part.begin; at < part.end; at += kPageBytes) {
          missing_.insert(static_cast<std::uint32_t>(at / kPageBytes));
          std::fill_n(memory_.begin() + static_cast<std::ptrdiff_t>(at), kPageBytes,
                      std::byte{0xEE});
        }
      }
      left_out_ = missing_.size();
      return true;
    };
  }

  std::uint64_t memory_bytes() const override { return memory_.size(); }
  Result<PageSpan> write(std::uint32_t page) override {
    missing_.erase(page);
    return std::span(memory_).subspan(std::size_t{page} * kPageBytes).first<kPageBytes>();
  }
  Result<PageView> read(std::uint32_t page) const override {
    EXPECT_FALSE(missing_.contains(page)) << page << " is read while it is left out";
    return page_at(memory_, page);
  }

  PageView touch(std::uint32_t page, const PageLoader& load) {
    if (missing_.contains(page)) must(load(page, *this));
    EXPECT_FALSE(missing_.contains(page));
    return page_at(memory_, page);
  }
  void change(std::uint32_t page, const PageLoader& load, std::uint8_t to) {
    touch(page, load);
    changed_.insert(page);
    memory_[std::size_t{page} * kPageBytes + 100] = std::byte{to};
  }
  /// Since it was last asked.
  std::vector<ByteRange> changed() {
    std::vector<ByteRange> ranges;
    for (const std::uint32_t page : std::exchange(changed_, {}))
      ranges.push_back({std::size_t{page} * kPageBytes, (std::size_t{page} + 1) * kPageBytes});
    return ranges;
  }
  std::size_t left_out() const { return left_out_; }
  std::size_t missing() const { return missing_.size(); }

 private:
  Bytes memory_;
  std::set<std::uint32_t> missing_;
  std::set<std::uint32_t> changed_;
  std::size_t left_out_ = 0;
};

class SnapshotLateTest : public SnapshotStoreTest {
 protected:
  struct Late {
    PartialMemory memory;
    Restored restored;
  };
  Late load_late(std::string_view context, std::optional<VersionId> version = {}) {
    const VersionInfo newest = must(store_->latest(context));
    PartialMemory memory(image_, newest.memory_bytes);
    Restored restored = must(store_->restore(context, version.value_or(newest.id), kBuild, image_,
                                             memory, memory.leave_out()));
    return {std::move(memory), std::move(restored)};
  }

  /// A large step and some small ones, with pages that are differences to others.
  Guest saved(std::string_view context, int steps = 6) {
    Guest guest(image_);
    LiveMemory live = must(store_->begin(context, kBuild));
    guest.grow_to(kPages * kPageBytes);
    std::mt19937 random(3);
    for (std::size_t page = 100; page < kPages; ++page) {
      if (page % 7 == 0) continue;  // some are zeros, also within regions that are left out
      for (std::size_t at = 0; at < kPageBytes; at += 64)
        guest.write(page * kPageBytes + at, fmt::format("{:x}", random()));
    }
    save(live, guest);
    for (int i = 0; i < steps; ++i) {
      for (std::size_t page = 10; page < kPages; page += 211)
        guest.write(page * kPageBytes + 30, fmt::format("step {} of {}", i, page));
      save(live, guest);
    }
    return guest;
  }

  SaveStats save_late(Late& late) {
    const auto ranges = late.memory.changed();
    return must(store_->save(late.restored.live,
                             must(late.restored.live.encode({.memory = late.memory,
                                                             .image = image_,
                                                             .changed = ranges,
                                                             .host_tables = as_bytes("tables"),
                                                             .time_ms = ++time_}))));
  }
  static void expect_equal(Late& late, const Guest& guest) {
    std::vector<std::uint32_t> order(guest.memory().size() / kPageBytes);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(5));
    for (const std::uint32_t page : order) {
      ASSERT_TRUE(equal(late.memory.touch(page, late.restored.load), page_at(guest.memory(), page)))
          << page;
    }
  }
};

TEST_F(SnapshotLateTest, EveryPageIsAsInTheWholeRestore) {
  const Guest guest = saved("c");
  ASSERT_EQ(load("c").guest.memory(), guest.memory());
  Late late = load_late("c");
  EXPECT_GT(late.memory.missing(), kPages / 2);
  EXPECT_EQ(late.restored.live.stored_pages(), load("c").restored.live.stored_pages());
  expect_equal(late, guest);
  EXPECT_EQ(late.restored.live.unread_pages(), 0u);
}

TEST_F(SnapshotLateTest, ReadsLittleUntilItIsAskedFor) {
  saved("c");
  const Late late = load_late("c");
  EXPECT_LT(late.restored.packs_read, 20u);
  EXPECT_GT(load("c").restored.packs_read, 40u);
}

TEST_F(SnapshotLateTest, ReadsThePagesOfTheLastRunsAhead) {
  saved("c");
  Late late = load_late("c");
  EXPECT_LT(late.memory.missing(), late.memory.left_out());
  const PageLoader nobody = [](std::uint32_t page, PageSink&) -> Result<void> {
    return Error{ErrorCode::kInternal, fmt::format("page {} was not read ahead", page)};
  };
  for (std::uint32_t page = 10; page < kPages; page += 211) late.memory.touch(page, nobody);
}

TEST_F(SnapshotLateTest, LeavesNothingOutOfASmallMemory) {
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  guest.grow_to(kPages * kPageBytes);
  for (std::size_t page = 100; page < 400; ++page) guest.write(page * kPageBytes, "small");
  save(live, guest);
  const Late late = load_late("c");
  EXPECT_EQ(late.memory.left_out(), 0u);
  EXPECT_FALSE(late.restored.load);
}

TEST_F(SnapshotLateTest, CanBeSavedWithoutWhatIsLeftOut) {
  Guest guest = saved("c");
  for (int round = 0; round < 8; ++round) {
    Late late = load_late("c");
    const std::size_t missing = late.memory.missing();
    for (int step = 0; step < 6; ++step) {
      for (const std::uint32_t page : {5U, 300U, 301U, 1700U + static_cast<std::uint32_t>(step)}) {
        late.memory.change(page, late.restored.load,
                           static_cast<std::uint8_t>(1 + round * 8 + step));
        guest.memory()[std::size_t{page} * kPageBytes + 100] =
            static_cast<std::byte>(1 + round * 8 + step);
      }
      const SaveStats stats = save_late(late);
      EXPECT_EQ(stats.pages_changed, 4u);
    }
    EXPECT_GT(late.memory.missing(), missing / 2);
    ASSERT_EQ(load("c").guest.memory(), guest.memory());
    must(store_->collect());
    restart({});
  }
  Late late = load_late("c");
  expect_equal(late, guest);
}

TEST_F(SnapshotLateTest, ForksAndEarlierVersionsToo) {
  const Guest guest = saved("c");
  must(store_->fork("c", {}, "d", 1));
  Late fork = load_late("d");
  expect_equal(fork, guest);
  const auto history = must(store_->history("c"));
  ASSERT_GT(history.size(), 4u);
  Late late = load_late("c", history[3].version);
  const Loaded whole = load("c", history[3].version);
  expect_equal(late, whole.guest);
}

TEST_F(SnapshotLateTest, DamageIsToldForThePagesThatItConcerns) {
  const Guest guest = saved("c", 0);
  Late late = load_late("c");
  // A pack of the large step: those of other pages are whole.
  damage_packs([](std::string_view key) { return pack_of_key(key)->sequence == 20; });
  std::size_t damaged = 0;
  for (std::uint32_t page = 0; page < kPages; ++page) {
    Result<void> loaded;
    if (late.memory.missing() > 0) loaded = late.restored.load(page, late.memory);
    if (loaded.ok()) {
      ASSERT_TRUE(
          equal(late.memory.touch(page, late.restored.load), page_at(guest.memory(), page)));
      continue;
    }
    ++damaged;
    EXPECT_EQ(loaded.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(loaded.error().message, HasSubstr(fmt::format("page {} ", page)));
    EXPECT_THAT(loaded.error().message, HasSubstr("checksum mismatch"));
  }
  EXPECT_EQ(damaged, 64u);
}

TEST_F(SnapshotLateTest, CollectionsKeepWhatIsLeftOutAsLongAsTheMemoryLives) {
  restart({.history = {.steps_max = 2, .full = 1, .every = 0}});
  const Guest guest = saved("c", 0);
  auto late = std::make_unique<Late>(load_late("c"));
  // Another memory of the context goes on, and what the late one was made from leaves the history.
  Loaded other = load("c");
  std::mt19937 random(11);
  for (std::size_t page = 100; page < kPages; ++page) {
    std::string noise(kPageBytes, '\0');  // no difference to anything is smaller
    for (char& byte : noise) byte = static_cast<char>(random());
    other.guest.write(page * kPageBytes, noise);
  }
  for (int i = 0; i < 30; ++i) {
    other.guest.write(0, fmt::format("step {}", i));
    save(other.restored.live, other.guest);
  }
  must(store_->collect());
  const std::size_t packs = pack_count();
  expect_equal(*late, guest);
  late.reset();
  must(store_->collect());
  EXPECT_LT(pack_count(), packs - 30);
}

TEST_F(SnapshotLateTest, WhatNobodyAsksForIsCollectedOnceTheMemoryIsGone) {
  saved("c");
  must(store_->fork("c", {}, "keeps the family", 1));
  auto late = std::make_unique<Late>(load_late("c"));
  must(store_->remove("c"));
  must(store_->remove("keeps the family"));
  EXPECT_EQ(pack_count(), 0u);
  // The pages are gone, and say so.
  std::size_t failed = 0;
  for (std::uint32_t page = 2000; page < kPages; ++page) {
    if (!late->restored.load(page, late->memory).ok()) ++failed;
  }
  EXPECT_GT(failed, 500u);
}

TEST_F(SnapshotLateTest, PagesOfAnotherVersionAreDamage) {
  // Each of these packs is right, but one of them is from another context's life.
  saved("c", 0);
  const auto packs_of = [&] {
    std::map<std::string, Bytes> rows;
    must(object_->read([&](storage::Reader& reader) {
      return reader.scan({.table = Options().packs_table, .from = {}, .to = {}},
                         storage::Order::kAscending, [&](std::string_view key, BytesView value) {
                           rows.emplace(key, Bytes(value.begin(), value.end()));
                           return Result<storage::Scan>(storage::Scan::kContinue);
                         });
    }));
    return rows;
  };
  const auto before = packs_of();
  must(object_->destroy());
  restart({});
  Guest guest(image_);
  LiveMemory live = must(store_->begin("c", kBuild));
  guest.grow_to(kPages * kPageBytes);
  for (std::size_t page = 100; page < kPages; ++page) {
    if (page % 7 == 0) continue;
    guest.write(page * kPageBytes, fmt::format("different {}", page));
  }
  save(live, guest);
  const auto after = packs_of();
  ASSERT_EQ(before.size(), after.size());
  must(object_->transact([&](storage::Transaction& transaction) {
    const auto& [key, bytes] = *std::next(before.begin(), 20);
    return transaction.put(Options().packs_table, key, bytes);
  }));
  Late late = load_late("c");
  std::string error;
  for (std::uint32_t page = 0; page < kPages && late.memory.missing() > 0; ++page) {
    if (auto loaded = late.restored.load(page, late.memory); !loaded.ok())
      error = loaded.error().message;
  }
  EXPECT_THAT(error, HasSubstr("not those of this version"));
}

}  // namespace
}  // namespace sw::snapshot
