// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "snapshot/catalog.h"

namespace sw::snapshot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<KeptVersion> versions(std::uint32_t count, std::uint64_t bytes = 100) {
  std::vector<KeptVersion> versions;
  for (std::uint32_t i = 1; i <= count; ++i)
    versions.push_back({.id = {1, i}, .parent = {1, i - 1}, .step = i, .bytes = bytes});
  return versions;
}

std::vector<std::uint64_t> left(std::vector<KeptVersion> versions, const HistoryLimits& limits,
                                const std::set<VersionId>& pinned = {}) {
  std::vector<std::uint64_t> steps;
  const auto gone = surplus(versions, pinned, limits);
  for (std::size_t i = 0; i < versions.size(); ++i) {
    if (!std::ranges::binary_search(gone, i)) steps.push_back(versions[i].step);
  }
  return steps;
}

TEST(History, KeepsTheLastStepsAndOfOlderOnesTheFirstOfEachInterval) {
  EXPECT_THAT(left(versions(35), {.full = 4, .every = 10}),
              ElementsAre(1, 10, 20, 30, 32, 33, 34, 35));
  EXPECT_THAT(left(versions(6), {.full = 2, .every = 0}), ElementsAre(5, 6));
  EXPECT_THAT(left(versions(6), {.full = 0, .every = 1}), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(left(versions(3), {}), ElementsAre(1, 2, 3));
  EXPECT_THAT(left({}, {}), IsEmpty());
}

TEST(History, KeepsTheNextStepOfAnIntervalWhoseFirstWasNotSaved) {
  std::vector<KeptVersion> some = versions(30);
  std::erase_if(some, [](const KeptVersion& v) { return v.step == 10 || v.step == 11; });
  EXPECT_THAT(left(some, {.full = 1, .every = 10}), ElementsAre(1, 12, 20, 30));
}

TEST(History, OldestStepsGoWhenTheLimitsAreExceeded) {
  EXPECT_THAT(left(versions(10), {.bytes_max = 300, .full = 100}), ElementsAre(8, 9, 10));
  EXPECT_THAT(left(versions(10), {.steps_max = 2, .full = 100}), ElementsAre(9, 10));
  EXPECT_THAT(left(versions(10), {.bytes_max = 300, .full = 1, .every = 2}), ElementsAre(6, 8, 10));
}

TEST(History, PinnedVersionsStayAndDoNotCount) {
  EXPECT_THAT(left(versions(10), {.bytes_max = 200, .full = 100}, {{1, 3}, {1, 10}}),
              ElementsAre(3, 8, 9, 10));
}

TEST(History, CopiesGoWithTheWindow) {
  std::vector<KeptVersion> some = versions(12);
  some[4].copy = some[11].copy = true;
  EXPECT_THAT(left(some, {.full = 2, .every = 5}), ElementsAre(1, 6, 10, 11, 12));
}

TEST(History, RowsAreWrittenAndRead) {
  const KeptVersion version{.id = {3, 9},
                            .parent = {2, 8},
                            .step = 1ULL << 40U,
                            .time_ms = -5,
                            .bytes = 1ULL << 50U,
                            .copy = true};
  const std::string key = version_key(7, 4, 9);
  EXPECT_EQ(version_of_key(key), (PackId{4, 9}));
  EXPECT_EQ(version_of_key(pack_key(7, {4, 9})), std::nullopt);
  const Bytes row = encode_version_row(key, version, "x = 1");
  const auto read = decode_version_row(key, row);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->first.id, version.id);
  EXPECT_EQ(read->first.parent, version.parent);
  EXPECT_EQ(read->first.step, version.step);
  EXPECT_EQ(read->first.time_ms, version.time_ms);
  EXPECT_EQ(read->first.bytes, version.bytes);
  EXPECT_TRUE(read->first.copy);
  EXPECT_EQ(read->second, "x = 1");
  EXPECT_FALSE(decode_version_row(version_key(7, 4, 10), row).ok()) << "it is another's";
  for (std::size_t i = 0; i < row.size(); ++i) {
    Bytes damaged = row;
    damaged[i] ^= std::byte{4};
    EXPECT_FALSE(decode_version_row(key, damaged).ok()) << i;
    EXPECT_FALSE(decode_version_row(key, BytesView(row).first(i)).ok()) << i;
  }
}

TEST(History, StepsAreNamedInRanges) {
  EXPECT_EQ(steps_of(versions(3)), "1 to 3");
  std::vector<KeptVersion> some = versions(9);
  some.erase(some.begin() + 3);
  some.erase(some.begin() + 1);
  EXPECT_EQ(steps_of(some), "1, 3, 5 to 9");
  std::vector<KeptVersion> many = versions(100);
  std::erase_if(many, [](const KeptVersion& v) { return v.step % 2 == 0; });
  EXPECT_EQ(steps_of(many),
            "1, 3, 5, 7, 9, 11, 13, 15, 17, 19, …, 81, 83, 85, 87, 89, 91, 93, 95, 97, 99");
}

}  // namespace
}  // namespace sw::snapshot
