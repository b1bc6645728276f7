// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasm/write_tracking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "wasm/slot.h"
#include "wasm/test_guest.h"

namespace sw::wasm {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

using Pages = std::set<std::size_t>;

bool is_offered() {
  return DirtyPageScanner::create(DirtyMethod::kPagemapScan).ok() &&
         open_userfaults(kTrackedWrites);
}
#define SW_NEEDS_TRACKING() \
  if (!is_offered()) GTEST_SKIP() << "this kernel does not track writes for us"

Pages pages_of(const std::vector<ByteRange>& ranges) {
  Pages pages;
  for (const ByteRange& range : ranges) {
    for (std::size_t at = range.begin; at < range.end; at += kPageBytes)
      pages.insert(at / kPageBytes);
  }
  return pages;
}

// So many pages are protected as soon as they are named.
constexpr std::size_t kManyPages = 1100;
// Of the memory at rest and of its image; a slot then has more, without an image, and can grow.
constexpr std::size_t kImagePages = 2048;
constexpr std::size_t kPagesAtRest = kImagePages + 512;
constexpr std::size_t kReserved = 4 * kImagePages * kPageBytes;

class WriteTrackingTest : public ::testing::Test {
 protected:
  static std::shared_ptr<const Image> make_image() {
    Bytes content(kImagePages * kPageBytes);
    for (std::size_t page = 0; page < kImagePages; ++page)
      content[page * kPageBytes] = static_cast<std::byte>(page | 1U);
    return image_of(content);
  }

  Pages changed() {
    std::vector<ByteRange> ranges;
    EXPECT_TRUE(slot_->take_changed(*scanner_, ranges).ok());
    return pages_of(ranges);
  }
  void write(std::size_t page) { slot_->base()[page * kPageBytes + 1] ^= std::byte{1}; }
  std::byte read(std::size_t page) {
    return static_cast<volatile std::byte*>(slot_->base())[page * kPageBytes];
  }
  void write_many(std::size_t first = 0) {
    for (std::size_t page = first; page < first + kManyPages; ++page) write(page);
  }
  std::size_t reset() { return slot_->reset(*scanner_, scratch_).value(); }
  bool is_at_rest() {
    const BytesView image = image_->bytes();
    return slot_->size() == kPagesAtRest * kPageBytes &&
           std::memcmp(slot_->base(), image.data(), image.size()) == 0 &&
           std::ranges::all_of(slot_->memory().subspan(image.size()),
                               [](std::byte byte) { return byte == std::byte{0}; });
  }

  std::shared_ptr<const Image> image_ = make_image();
  std::unique_ptr<Slot> slot_ =
      Slot::create(image_, kPagesAtRest* kPageBytes, kReserved, kPageBytes).value();
  std::unique_ptr<DirtyPageScanner> scanner_ = DirtyPageScanner::create();
  std::vector<ByteRange> scratch_;
};

TEST_F(WriteTrackingTest, NamesAPageOnceForEachWrite) {
  SW_NEEDS_TRACKING();
  read(1500);
  write_many();
  EXPECT_EQ(changed().size(), kManyPages);
  EXPECT_THAT(changed(), IsEmpty());
  write(5);
  write(1300);
  read(6);
  read(1500);
  EXPECT_THAT(changed(), ElementsAre(5, 1300));
}

TEST_F(WriteTrackingTest, NamesFewPagesAgainUntilThatCostsMoreThanFaults) {
  SW_NEEDS_TRACKING();
  write_many();
  changed();
  for (std::size_t page = 0; page < 10; ++page) write(page);
  EXPECT_EQ(changed().size(), 10u);
  std::size_t calls = 0;
  for (; !changed().empty(); ++calls) ASSERT_LT(calls, 1000u);
  EXPECT_GT(calls, 50u);
  write(3);
  EXPECT_THAT(changed(), ElementsAre(3));
}

TEST_F(WriteTrackingTest, ALargeRunDoesNotMakeLaterOnesLookAtItsPagesForLong) {
  SW_NEEDS_TRACKING();
  write_many();
  changed();
  write_many();
  EXPECT_EQ(changed().size(), kManyPages);
  std::size_t calls = 0;
  for (; write(3), changed().size() != 1; ++calls) ASSERT_LT(calls, 20u);
}

TEST_F(WriteTrackingTest, CoversMemoryBeyondTheImageAndMemoryThatGrew) {
  SW_NEEDS_TRACKING();
  ASSERT_TRUE(slot_->grow(2 * kImagePages * kPageBytes).ok());
  write_many(kPagesAtRest - kManyPages / 2);
  changed();
  EXPECT_THAT(changed(), IsEmpty());
  ASSERT_TRUE(slot_->grow(3 * kImagePages * kPageBytes).ok());
  write(kImagePages + 1);
  write(kPagesAtRest + 1);
  write(3 * kImagePages - 1);
  EXPECT_THAT(changed(), ElementsAre(kImagePages + 1, kPagesAtRest + 1, 3 * kImagePages - 1));
}

TEST_F(WriteTrackingTest, NamesAnyWriterAndOutlivesBlocksAndSwap) {
  SW_NEEDS_TRACKING();
  write_many();
  changed();
  slot_->block_access();
  ASSERT_TRUE(slot_->open_access_at(slot_->base()));
  slot_->allow_access();
  ::madvise(slot_->base(), slot_->size(), MADV_PAGEOUT);
  EXPECT_THAT(changed(), IsEmpty());
  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd from(ends[0]);
  const UniqueFd to(ends[1]);
  ASSERT_EQ(::write(to.get(), "ab", 2), 2);
  ASSERT_EQ(::read(from.get(), slot_->base() + 7 * kPageBytes - 1, 2), 2);
  EXPECT_THAT(changed(), ElementsAre(6, 7));
}

TEST_F(WriteTrackingTest, TheFirstTimeAfterAResetNamesAllThatDiffersAgain) {
  for (const std::size_t written : {kManyPages, std::size_t{20}}) {
    SCOPED_TRACE(written);
    for (int round = 0; round < 3; ++round) {
      write_many();
      changed();  // and protects
      for (std::size_t page = 0; page < written; ++page) write(page);
      write(kPagesAtRest - 1);
      ASSERT_TRUE(slot_->grow(2 * kImagePages * kPageBytes).ok());
      write(2 * kImagePages - 1);
      changed();
      reset();
      ASSERT_TRUE(is_at_rest());
      ASSERT_TRUE(slot_->grow(2 * kImagePages * kPageBytes).ok());
      for (const std::size_t page :
           {std::size_t{3}, std::size_t{1900}, kPagesAtRest - 1, 2 * kImagePages - 1})
        write(page);
      EXPECT_THAT(changed(), IsSupersetOf({std::size_t{3}, std::size_t{1900}, kPagesAtRest - 1,
                                           2 * kImagePages - 1}));
      reset();
    }
  }
}

// Dropping a protected page of a file leaves a mark that looks like a page in swap.
TEST_F(WriteTrackingTest, ASlotThatWasTrackedIsNoMoreWorkToReset) {
  SW_NEEDS_TRACKING();
  write_many();
  changed();
  EXPECT_EQ(reset(), kManyPages);  // dropped
  ASSERT_TRUE(scanner_->scan(slot_->memory(), image_->bytes(), scratch_).ok());
  EXPECT_THAT(scratch_, IsEmpty());
  write(3);
  EXPECT_EQ(reset(), 1u);  // put back
  ASSERT_TRUE(is_at_rest());
}

TEST_F(WriteTrackingTest, PartsThatComeLateAreTrackedToo) {
  SW_NEEDS_TRACKING();
  struct NoDamage final : LatePages::Damage {
    void note(const Error& error) override { ADD_FAILURE() << error.message; }
    void end_call() override {}
  } no_damage;
  const std::size_t begin = kImagePages - kManyPages;
  const std::size_t end = kImagePages + 100;
  const std::vector<ByteRange> parts = {{begin * kPageBytes, end * kPageBytes}};
  ASSERT_TRUE(slot_->leave_out_pages(FaultService::create().value(), parts).ok());
  const auto supply = [](std::uint32_t page, PageSink& memory) -> Result<void> {
    SW_TRY(const PageSpan room, memory.write(page));
    std::ranges::fill(room, static_cast<std::byte>(page | 1U));
    return {};
  };
  ASSERT_TRUE(slot_->late_pages()->start(supply, no_damage).ok());
  for (std::size_t page = begin; page < end - 10; ++page)
    ASSERT_EQ(read(page), static_cast<std::byte>(page | 1U));
  write(3);
  const Pages first = changed();
  EXPECT_THAT(first,
              AllOf(Contains(3), Contains(begin), Contains(end - 11), Not(Contains(end - 1))));
  EXPECT_THAT(changed(), IsEmpty());
  write(3);
  write(begin);
  write(end - 1);  // comes now
  write(kPagesAtRest - 1);
  EXPECT_THAT(changed(), ElementsAre(3, begin, end - 1, kPagesAtRest - 1));
  reset();
  ASSERT_TRUE(is_at_rest());
  write_many(begin);
  EXPECT_THAT(changed(), IsSupersetOf({begin, begin + kManyPages - 1}));
  write(begin);
  EXPECT_THAT(changed(), ElementsAre(begin));
}

TEST_F(WriteTrackingTest, WithoutTrackingNamesAllThatDiffers) {
  for (const DirtyMethod method : {DirtyMethod::kPagemapRead, DirtyMethod::kCompare}) {
    scanner_ = DirtyPageScanner::create(method).value();
    EXPECT_EQ(scanner_->protect(slot_->memory()).error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(scanner_->scan_written(slot_->memory(), scratch_).error().code,
              ErrorCode::kUnavailable);
    write_many();
    for (int round = 0; round < 3; ++round) EXPECT_GE(changed().size(), kManyPages);
    write_many(1);  // and as at first
    EXPECT_THAT(changed(), IsSupersetOf({std::size_t{0}, kManyPages}));
    reset();
  }
}

// Whether tracking was refused from the start, or a part of the memory has lost it.
TEST_F(WriteTrackingTest, MemoryThatIsNotTrackedIsNeverPassedOver) {
  SW_NEEDS_TRACKING();
  write_many();
  changed();
  std::byte* const at = slot_->base() + 1500 * kPageBytes;
  ASSERT_EQ(::mmap(at, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, image_->fd(),
                   static_cast<off_t>(1500 * kPageBytes)),
            at);
  write(1500);
  write(1600);
  EXPECT_EQ(changed().size(), kManyPages + 2);
  write(1700);
  EXPECT_EQ(changed().size(), kManyPages + 3);

  WriteTracking none;
  std::vector<ByteRange> ranges;
  alignas(kPageBytes) static std::array<std::byte, 4 * kPageBytes> memory;
  memory.fill(std::byte{1});
  ASSERT_TRUE(none.take_changed(*scanner_, memory, {}, ranges).ok());
  ASSERT_TRUE(none.take_changed(*scanner_, memory, {}, ranges).ok());
  EXPECT_FALSE(ranges.empty());
  EXPECT_TRUE(none.start_over(memory).ok());
}

TEST_F(WriteTrackingTest, MoreRangesThanOneRequestHolds) {
  SW_NEEDS_TRACKING();
  ASSERT_TRUE(slot_->grow(kReserved).ok());
  const std::size_t pages = kReserved / kPageBytes;
  for (const std::size_t step : {2U, 3U, 2U}) {
    Pages expected;
    for (std::size_t page = 0; page < pages; page += step) {
      write(page);
      expected.insert(page);
    }
    EXPECT_EQ(changed(), expected);
    EXPECT_THAT(changed(), IsEmpty());
  }
}

TEST_F(WriteTrackingTest, NothingIsMissedInLongRandomUse) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int session = 0; session < 4; ++session) {
    Bytes saved(image_->bytes().begin(), image_->bytes().end());
    saved.resize(kReserved);
    for (int step = 0; step < 60; ++step) {
      if (random() % 20 == 0) {
        ASSERT_TRUE(slot_->grow(std::min(kReserved, slot_->size() + 256 * kPageBytes)).ok());
      }
      const std::size_t pages = slot_->size() / kPageBytes;
      const std::size_t writes = random() % (random() % 8 == 0 ? 3000 : 30);
      for (std::size_t i = 0; i < writes; ++i) write(random() % pages);
      for (std::size_t i = 0; i < 20; ++i) read(random() % pages);
      if (random() % 3 == 0) {
        slot_->block_access();
        slot_->allow_access();
      }
      for (const std::size_t page : changed()) {
        std::memcpy(saved.data() + page * kPageBytes, slot_->base() + page * kPageBytes,
                    kPageBytes);
      }
      ASSERT_EQ(std::memcmp(saved.data(), slot_->base(), slot_->size()), 0);
    }
    reset();
    ASSERT_TRUE(is_at_rest());
  }
}

}  // namespace
}  // namespace sw::wasm
