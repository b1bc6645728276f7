// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/page_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace sw::snapshot {
namespace {

constexpr PackId kPack{.owner = 1, .sequence = 7};

PageState stored_at(std::uint16_t index, PackId pack = kPack, std::uint8_t depth = 0) {
  PageState state;
  state.place = {.pack = pack, .index = index};
  state.depth = depth;
  return state;
}

/// The parts of a run that tell it from others.
struct Seen {
  int page;
  int length;
  int index;
  bool plain;
  bool operator==(const Seen&) const = default;
};

std::vector<Seen> seen(const Region& region) {
  std::vector<Seen> found;
  for (const PageRun& run : runs_of(region)) {
    found.push_back({run.page_in_region, run.length, run.first.index, run.plain});
  }
  return found;
}

TEST(RunsOf, ARegionOfWhichNothingIsStoredHasNone) { EXPECT_TRUE(runs_of(Region{}).empty()); }

TEST(RunsOf, PagesThatFollowEachOtherInOnePackAreOneRun) {
  Region region{};
  region[3] = stored_at(10);
  region[4] = stored_at(11);
  region[5] = stored_at(12);
  EXPECT_EQ(seen(region), (std::vector<Seen>{{3, 3, 10, true}}));
}

TEST(RunsOf, AGapInThePagesOrInThePackEndsARun) {
  Region region{};
  region[0] = stored_at(0);
  region[2] = stored_at(1);
  region[3] = stored_at(5);
  EXPECT_EQ(seen(region), (std::vector<Seen>{{0, 1, 0, true}, {2, 1, 1, true}, {3, 1, 5, true}}));
}

TEST(RunsOf, AnotherPackOrOwnerEndsARun) {
  Region region{};
  region[0] = stored_at(0);
  region[1] = stored_at(1, {.owner = 1, .sequence = 8});
  region[2] = stored_at(2, {.owner = 2, .sequence = 8});
  EXPECT_EQ(runs_of(region).size(), 3u);
  EXPECT_EQ(runs_of(region)[2].first.pack.owner, 2u);
}

TEST(RunsOf, DifferencesToStoredPagesAreARunOfTheirOwnHoweverLongTheirChains) {
  Region region{};
  region[0] = stored_at(0);
  region[1] = stored_at(1, kPack, 1);
  region[2] = stored_at(2, kPack, 5);
  region[3] = stored_at(3);
  EXPECT_EQ(seen(region), (std::vector<Seen>{{0, 1, 0, true}, {1, 2, 1, false}, {3, 1, 3, true}}));
}

TEST(RunsOf, AWholeRegionIsOneRunOfAllItsPages) {
  Region region{};
  for (std::uint16_t page = 0; page < kRegionPages; ++page) region[page] = stored_at(page);
  EXPECT_EQ(seen(region), (std::vector<Seen>{{0, kRegionPages, 0, true}}));
}

TEST(PageTable, FindsWhatWasPutAndNothingOfRegionsThatAreNotThere) {
  PageTable table;
  table.at(kRegionPages + 2).hash = 42;
  ASSERT_NE(table.find(kRegionPages + 2), nullptr);
  EXPECT_EQ(table.find(kRegionPages + 2)->hash, 42u);
  EXPECT_EQ(table.find(2), nullptr);
  EXPECT_EQ(table.find(kPagesMax - 1), nullptr);
  EXPECT_EQ(table.regions().size(), 1u);
  // Another page of the same region is known to be as in the image.
  ASSERT_NE(table.find(kRegionPages), nullptr);
  EXPECT_FALSE(table.find(kRegionPages)->stored());
}

// Digests are stored, so what they are made of never changes.
TEST(DigestShare, IsWhatEarlierVersionsStored) {
  EXPECT_EQ(digest_share(0, 0), 0x873e6848af0d70a3U);
  EXPECT_EQ(digest_share(7, 0x0123456789abcdefU), 0x4b18ec3f6b12bebbU);
}

TEST(DigestShare, ThePagesOfAMemoryThatChangedPlacesHaveAnotherDigest) {
  EXPECT_NE(digest_share(1, 100) + digest_share(2, 200),
            digest_share(1, 200) + digest_share(2, 100));
}

}  // namespace
}  // namespace sw::snapshot
