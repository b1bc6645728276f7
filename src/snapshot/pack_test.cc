// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <random>
#include <string>

namespace sw::snapshot {
namespace {

using ::testing::HasSubstr;

constexpr PackId kSelf = {3, 10};
constexpr std::size_t kSumOffset = 4;
constexpr std::size_t kBodyOffset = 12;

void add_entry(Pack& pack, Entry entry, std::string_view difference) {
  entry.offset = static_cast<std::uint32_t>(pack.differences.size());
  entry.size = static_cast<std::uint32_t>(difference.size());
  const BytesView bytes = as_bytes(difference);
  pack.differences.insert(pack.differences.end(), bytes.begin(), bytes.end());
  pack.entries.push_back(entry);
}

/// One of everything.
Pack sample_pack() {
  Pack pack{.id = kSelf};
  std::string whole(kPageBytes, '\0');
  for (std::size_t i = 0; i < whole.size(); ++i)
    whole[i] = static_cast<char>(i % 4 == 0 ? i / 4 : 0);
  add_entry(pack, {.index = 0, .page = 7, .against = Against::kImage, .check = 0x11111111},
            "\x02\x03"
            "abc");
  add_entry(pack,
            {.index = 1, .page = 8, .against = Against::kZero, .whole = true, .check = 0x22222222},
            whole);
  add_entry(pack,
            {.index = 3,
             .page = 300,
             .against = Against::kStored,
             .base = {{2, 9}, 5},
             .check = 0x33333333},
            "\x01\x01x");
  pack.nodes.push_back({0, 0, {{7, 2, {kSelf, 0}, true}, {100, 156, {{3, 4}, 17}, false}}, {}});
  pack.nodes.push_back({2, 1, {{44, 1, {kSelf, 3}, false}}, {{1, 9}, 4}});
  Version& version = pack.version.emplace();
  version.build = "b1";
  version.memory_bytes = 1 << 20;
  version.time_ms = 1'700'000'000'000;
  version.key_sequence = 8;
  version.pages = 321;
  version.digest = 0x0123456789abcdef;
  version.host_tables = kSelf;
  version.regions = {{0, {kSelf, 0}}, {1, {kSelf, 2}}, {9, {{1, 2}, 3}}};
  const BytesView tables = as_bytes("host tables");
  pack.host_tables.emplace(tables.begin(), tables.end());
  return pack;
}

Bytes encoded(const Pack& pack) {
  Compression compression;
  auto bytes = encode_pack(pack, compression);
  EXPECT_TRUE(bytes.ok());
  return *std::move(bytes);
}

Result<Pack> decoded(BytesView bytes, PackPart part = PackPart::kAll, PackId id = kSelf) {
  Compression compression;
  return decode_pack(id, bytes, part, compression);
}

std::string difference_of(const Pack& pack, std::size_t entry) {
  const Entry& e = pack.entries[entry];
  return std::string(as_text(BytesView(pack.differences).subspan(e.offset, e.size)));
}

/// Makes the checksum of changed bytes right, so that what is behind it is tested too.
void reseal(Bytes& bytes, PackId id = kSelf) {
  const BytesView body = BytesView(bytes).subspan(kBodyOffset);
  const std::uint64_t sum = XXH3_64bits_withSeed(body.data(), body.size(),
                                                 (std::uint64_t{id.owner} << 32U) | id.sequence);
  for (std::size_t i = 0; i < 8; ++i)
    bytes[kSumOffset + i] = static_cast<std::byte>(sum >> (8 * i));
}

TEST(Pack, ComesBackAsItWas) {
  const Pack before = sample_pack();
  const auto after = decoded(encoded(before));
  ASSERT_TRUE(after.ok()) << after.error().message;
  ASSERT_EQ(after->entries.size(), before.entries.size());
  for (std::size_t i = 0; i < before.entries.size(); ++i) {
    const Entry& a = before.entries[i];
    const Entry& b = after->entries[i];
    EXPECT_EQ(a.index, b.index);
    EXPECT_EQ(a.page, b.page);
    EXPECT_EQ(a.against, b.against);
    EXPECT_EQ(a.base, b.base);
    EXPECT_EQ(a.whole, b.whole);
    EXPECT_EQ(a.check, b.check);
    EXPECT_EQ(difference_of(before, i), difference_of(*after, i));
  }
  ASSERT_EQ(after->nodes.size(), 2U);
  EXPECT_EQ(after->nodes[1].index, 2);
  EXPECT_EQ(after->nodes[1].region, 1U);
  const PageRun& run = after->nodes[0].runs[1];
  EXPECT_EQ(run.page_in_region, 100);
  EXPECT_EQ(run.length, 156);
  EXPECT_EQ(run.first, (PackRef{{3, 4}, 17}));
  EXPECT_FALSE(run.plain);
  EXPECT_TRUE(after->nodes[0].runs[0].plain);
  ASSERT_TRUE(after->version);
  EXPECT_EQ(after->version->build, "b1");
  EXPECT_EQ(after->version->memory_bytes, std::uint64_t{1} << 20U);
  EXPECT_EQ(after->version->time_ms, 1'700'000'000'000);
  EXPECT_EQ(after->version->key_sequence, 8U);
  EXPECT_EQ(after->version->pages, 321U);
  EXPECT_EQ(after->version->digest, 0x0123456789abcdefU);
  EXPECT_EQ(after->version->host_tables, kSelf);
  ASSERT_EQ(after->version->regions.size(), 3U);
  EXPECT_EQ(after->version->regions[2].region, 9U);
  EXPECT_EQ(after->version->regions[2].node, (PackRef{{1, 2}, 3}));
  EXPECT_EQ(as_text(*after->host_tables), "host tables");
}

TEST(Pack, DirectoryAloneSaysWhereThingsAre) {
  const auto pack = decoded(encoded(sample_pack()), PackPart::kDirectory);
  ASSERT_TRUE(pack.ok());
  EXPECT_EQ(pack->entries.size(), 3U);
  EXPECT_EQ(pack->nodes.size(), 2U);
  EXPECT_TRUE(pack->version && pack->host_tables);
  EXPECT_TRUE(pack->differences.empty());
}

TEST(Pack, TruncationAtEveryByteIsNoticed) {
  const Bytes bytes = encoded(sample_pack());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto cut = decoded(BytesView(bytes).first(size));
    ASSERT_FALSE(cut.ok()) << size;
    EXPECT_EQ(cut.error().code, ErrorCode::kCorrupt);
    if (size < kBodyOffset) continue;
    Bytes resealed(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    reseal(resealed);
    EXPECT_FALSE(decoded(resealed).ok()) << size;
    EXPECT_FALSE(decoded(resealed, PackPart::kDirectory).ok()) << size;
  }
}

TEST(Pack, EveryChangedBitIsNoticed) {
  const Bytes bytes = encoded(sample_pack());
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    Bytes changed = bytes;
    changed[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_FALSE(decoded(changed).ok()) << bit;
  }
}

TEST(Pack, UnderAnotherKeyIsNoticed) {
  const auto moved = decoded(encoded(sample_pack()), PackPart::kAll, {3, 11});
  ASSERT_FALSE(moved.ok());
  EXPECT_THAT(moved.error().message, HasSubstr("snapshot pack 3.11: checksum mismatch"));
}

TEST(Pack, OfALaterFormatIsRefused) {
  Bytes bytes = encoded(sample_pack());
  bytes[3] = std::byte{kPackVersion + 1};
  const auto later = decoded(bytes);
  ASSERT_FALSE(later.ok());
  EXPECT_THAT(later.error().message, HasSubstr("format version 3"));
}

// Whoever can write the storage can also make checksums right: the reader must still not be misled
// into reading or writing out of bounds. The sanitizers watch.
TEST(Pack, ForgedPacksAreReadSafely) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const Bytes bytes = encoded(sample_pack());
  int read = 0;
  for (int i = 0; i < 30000; ++i) {
    Bytes forged = bytes;
    for (std::size_t n = 1 + random() % 3; n > 0; --n) {
      forged[kBodyOffset + random() % (forged.size() - kBodyOffset)] =
          static_cast<std::byte>(random());
    }
    reseal(forged);
    const auto pack = decoded(forged);
    if (!pack.ok()) continue;
    ++read;
    for (const Entry& entry : pack->entries) {
      ASSERT_LE(std::size_t{entry.offset} + entry.size, pack->differences.size());
      ASSERT_LT(entry.page, kPagesMax);
      ASSERT_TRUE(entry.against != Against::kStored || entry.base.pack.sequence < kSelf.sequence);
    }
    for (const Node& node : pack->nodes) {
      for (const PageRun& run : node.runs)
        ASSERT_LE(run.page_in_region + run.length, int{kRegionPages});
    }
  }
  EXPECT_GT(read, 0) << "the test should reach beyond the first check";
}

TEST(Pack, ReferenceToALaterPackIsRefused) {
  Pack pack = sample_pack();
  pack.entries[2].base.pack = {2, 10};
  EXPECT_FALSE(decoded(encoded(pack)).ok());
}

TEST(Pack, NodeWithoutPagesIsRefused) {
  Pack pack = sample_pack();
  pack.nodes[1].runs.clear();
  EXPECT_FALSE(decoded(encoded(pack)).ok());
}

TEST(Pack, IdsAreWrittenAndRead) {
  EXPECT_EQ(to_string(PackId{3, 10}), "3.10");
  EXPECT_EQ(parse_pack_id("3.10"), (PackId{3, 10}));
  for (const char* const wrong :
       {"", "3", "3.", ".1", "3.0", "3.10x", "-1.2", "3.99999999999", "a.b"}) {
    EXPECT_EQ(parse_pack_id(wrong), std::nullopt) << wrong;
  }
}

// Packs written by each version of the format; they must stay readable.
// docs/formats/snapshot.md explains them.
TEST(Pack, GoldenPacksAreRead) {
  for (const std::uint32_t version : {1U, 2U}) {
    SCOPED_TRACE(version);
    const auto golden = read_file(SW_SNAPSHOT_GOLDEN + std::to_string(version) + ".bin");
    ASSERT_TRUE(golden.ok()) << golden.error().message;
    const auto pack = decoded(*golden);
    ASSERT_TRUE(pack.ok()) << pack.error().message;
    const Pack expected = sample_pack();
    ASSERT_EQ(pack->entries.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(pack->entries[i].page, expected.entries[i].page);
      EXPECT_EQ(pack->entries[i].check, expected.entries[i].check);
      EXPECT_EQ(difference_of(*pack, i), difference_of(expected, i));
    }
    EXPECT_EQ(pack->entries[2].base, expected.entries[2].base);
    EXPECT_EQ(pack->nodes[0].runs[1].first, expected.nodes[0].runs[1].first);
    EXPECT_EQ(pack->nodes[0].base, PackRef{});
    EXPECT_EQ(pack->nodes[1].base, version == 1 ? PackRef{} : expected.nodes[1].base);
    EXPECT_EQ(pack->version->pages, expected.version->pages);
    EXPECT_EQ(pack->version->digest, expected.version->digest);
    EXPECT_EQ(pack->version->history, version == 1 ? 4U : 0U);
    EXPECT_EQ(pack->version->key_sequence, version == 1 ? kSelf.sequence : 8U);
    EXPECT_EQ(as_text(*pack->host_tables), "host tables");
  }
}

}  // namespace
}  // namespace sw::snapshot
