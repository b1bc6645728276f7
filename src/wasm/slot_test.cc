// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasm/slot.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "sandbox_workers/base/unique_fd.h"
#include "wasm/test_guest.h"

namespace sw::wasm {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

class SlotTest : public testing::Test {
 protected:
  SlotTest() {
    int ends[2] = {};
    EXPECT_EQ(::pipe(ends), 0);
    from_ = UniqueFd(ends[0]);
    to_ = UniqueFd(ends[1]);
  }

  /// Asks the kernel, which answers EFAULT instead of raising a signal.
  bool is_open(std::size_t offset) {
    if (::write(to_.get(), slot_->base() + offset, 1) != 1) return false;
    char byte = 1;
    return ::read(from_.get(), &byte, 1) == 1;
  }

  std::unique_ptr<Slot> slot_ = Slot::create(nullptr, 4 * kMiB, 16 * kMiB, kMiB).value();
  UniqueFd from_;
  UniqueFd to_;
};

TEST_F(SlotTest, ABlockedMemoryIsOpenedOnlyAroundTheAddress) {
  slot_->block_access();
  EXPECT_FALSE(is_open(0));
  EXPECT_TRUE(slot_->open_access_at(slot_->base() + kMiB + 100));
  EXPECT_FALSE(is_open(kMiB - 1));
  EXPECT_TRUE(is_open(kMiB));
  EXPECT_TRUE(is_open(2 * kMiB - 1));
  EXPECT_FALSE(is_open(2 * kMiB));
  EXPECT_TRUE(slot_->is_blocked());
  slot_->allow_access();
  EXPECT_FALSE(slot_->is_blocked());
  EXPECT_TRUE(is_open(0));
  EXPECT_TRUE(is_open(4 * kMiB - 1));
}

TEST_F(SlotTest, BlockingAgainClosesWhatWasOpened) {
  slot_->block_access();
  EXPECT_TRUE(slot_->open_access_at(slot_->base()));
  slot_->block_access();
  EXPECT_FALSE(is_open(0));
}

TEST_F(SlotTest, NothingIsOpenedThatIsNotOfABlockedMemory) {
  EXPECT_FALSE(slot_->open_access_at(slot_->base()));
  slot_->block_access();
  EXPECT_FALSE(slot_->open_access_at(slot_->base() - 1));
  EXPECT_FALSE(slot_->open_access_at(slot_->base() + slot_->size()));
  EXPECT_FALSE(slot_->open_access_at(this));
}

// What else is present is clean, and would make every scan for dirty pages longer.
TEST(Slots, ReadingBringsInTheTouchedPagesOnly) {
  if (!open_userfaults(kTrackedWrites))
    GTEST_SKIP() << "this kernel does not track writes for us, so it maps pages in groups";
  on_guest_thread([] {
    auto guest = make_guest(kCounter, {.with_image = true});
    const auto get = find<std::int32_t(std::int32_t)>(*guest, "get");
    EXPECT_EQ(guest->instance->call(get, 16).value(), 42);
    EXPECT_EQ(guest->instance->call(get, 70000).value(), 0);
    const auto bytes = guest->instance->memory().bytes();
    std::vector<std::uint64_t> entries(bytes.size() / kPageBytes);
    const UniqueFd pagemap(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
    const auto first = reinterpret_cast<std::uintptr_t>(bytes.data()) / kPageBytes;
    const std::size_t length = entries.size() * sizeof entries[0];
    ASSERT_EQ(::pread(pagemap.get(), entries.data(), length,
                      static_cast<off_t>(first * sizeof entries[0])),
              static_cast<ssize_t>(length));
    EXPECT_EQ(std::ranges::count_if(entries, [](std::uint64_t entry) { return entry >> 63 != 0; }),
              2);
  });
}

}  // namespace
}  // namespace sw::wasm
