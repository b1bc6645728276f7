// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/journal/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace sw::storage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kSalt = 77;

Value value(std::string_view text) {
  const BytesView bytes = as_bytes(text);
  return std::make_shared<const Bytes>(bytes.begin(), bytes.end());
}

Bytes frame(std::uint64_t sequence, std::string_view text, std::uint64_t salt = kSalt) {
  FrameEncoder encoder;
  encoder.add(3, {{{1, "key"}, value(text)}});
  encoder.add(4, {{{2, "erased"}, nullptr}});
  return encoder.finish(sequence, salt);
}

/// A journal file with these frames.
Bytes file(const std::vector<Bytes>& frames) {
  Bytes bytes = encode(JournalHeader{.first_sequence = 5, .salt = kSalt});
  for (const Bytes& one : frames) bytes.insert(bytes.end(), one.begin(), one.end());
  return bytes;
}

JournalContent read(const Bytes& bytes, std::uint64_t acknowledged_end = 0) {
  const auto header = decode_journal_header(bytes);
  EXPECT_TRUE(header.ok() && *header);
  return read_frames(bytes, **header, acknowledged_end);
}

std::vector<std::uint64_t> sequences(const JournalContent& content) {
  std::vector<std::uint64_t> found;
  for (const Frame& one : content.frames) found.push_back(one.sequence);
  return found;
}

TEST(Frame, HoldsTheRowsOfItsLayers) {
  const auto decoded = decode_frame(frame(9, "text"), kSalt);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->sequence, 9U);
  EXPECT_EQ(decoded->bytes % kFrameAlignment, 0U);
  ASSERT_EQ(decoded->parts.size(), 2U);
  EXPECT_EQ(decoded->parts[0].layer, 3U);
  EXPECT_EQ(as_text(*decoded->parts[0].rows->at({1, "key"})), "text");
  EXPECT_EQ(decoded->parts[1].rows->at({2, "erased"}), nullptr);
}

TEST(Frame, OfAnotherFileIsNone) { EXPECT_FALSE(decode_frame(frame(9, "text", kSalt + 1), kSalt)); }

TEST(Frame, AnyDamageIsFoundOutAndOfOnePartOnlyThatPart) {
  const Bytes whole = frame(9, "some text");
  for (std::size_t i = 0; i < whole.size(); ++i) {
    Bytes damaged = whole;
    damaged[i] ^= std::byte{1};
    const auto decoded = decode_frame(damaged, kSalt);
    if (!decoded) continue;
    // The last bytes only fill it up.
    const bool one_is_damaged = !decoded->parts[0].rows != !decoded->parts[1].rows;
    EXPECT_TRUE(one_is_damaged || i >= whole.size() - kFrameAlignment) << "byte " << i;
  }
}

TEST(Frames, EndWhereTheLastOneIsDamaged) {
  Bytes bytes = file({frame(5, "a"), frame(6, "b"), frame(7, "c")});
  const JournalContent whole = read(bytes);
  EXPECT_THAT(sequences(whole), ElementsAre(5, 6, 7));
  EXPECT_EQ(whole.end, bytes.size());
  EXPECT_EQ(whole.next_sequence, 8U);
  bytes[bytes.size() - frame(7, "c").size() + 40] ^= std::byte{1};
  const JournalContent torn = read(bytes);
  EXPECT_THAT(sequences(torn), ElementsAre(5, 6));
  EXPECT_EQ(torn.next_sequence, 7U);
  EXPECT_THAT(torn.damage, IsEmpty());
}

TEST(Frames, GoOnBehindDamageThatWasAcknowledgedAndSaySo) {
  const std::size_t begin = kJournalHeaderBytes + frame(5, "a").size();
  Bytes bytes = file({frame(5, "a"), frame(6, "b"), frame(7, "c")});
  for (std::size_t i = 0; i < 16; ++i) bytes[begin + i] = std::byte{0xff};
  const JournalContent content = read(bytes);
  EXPECT_THAT(sequences(content), ElementsAre(5, 7));
  EXPECT_THAT(content.damage, ElementsAre("frame 6 cannot be read"));
}

TEST(Frames, AtTheEndAreDamagedIfLaterOnesAreElsewhere) {
  const JournalContent content = read(file({frame(5, "a")}), 8);
  EXPECT_THAT(content.damage, ElementsAre("frames 6 to 7 cannot be read"));
}

TEST(Frames, OfAnEarlierUseOfTheFileAreNotTakenForNewOnes) {
  const JournalContent content =
      read(file({frame(5, "a"), frame(3, "old"), frame(6, "other salt", kSalt + 1)}));
  EXPECT_THAT(sequences(content), ElementsAre(5));
  EXPECT_THAT(content.damage, IsEmpty());
}

TEST(Frames, WithinTheBytesOfAGuestAreNotTakenForFrames) {
  // It knows the format, but not the file's salt.
  const Bytes forged = frame(7, "forged", 0);
  Bytes bytes = file({frame(5, "a"), frame(6, as_text(forged)), frame(7, "c")});
  const std::size_t begin = kJournalHeaderBytes + frame(5, "a").size();
  bytes[begin] ^= std::byte{1};
  const JournalContent content = read(bytes);
  ASSERT_THAT(sequences(content), ElementsAre(5, 7));
  EXPECT_EQ(as_text(*content.frames[1].parts[0].rows->at({1, "key"})), "c");
}

TEST(JournalHeader, OfANewerProgramIsRefused) {
  Bytes header = encode(JournalHeader{.first_sequence = 5, .salt = kSalt});
  EXPECT_EQ((*decode_journal_header(header))->first_sequence, 5U);
  header[20] ^= std::byte{1};
  EXPECT_FALSE((*decode_journal_header(header)).has_value());
  EXPECT_FALSE((*decode_journal_header({})).has_value());
}

TEST(Frames, RandomBytesAreNeverACrash) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const Bytes whole = file({frame(5, "a"), frame(6, std::string(3000, 'b')), frame(7, "c")});
  for (int round = 0; round < 2000; ++round) {
    Bytes damaged = whole;
    for (auto i = random() % 30; i > 0; --i)
      damaged[kJournalHeaderBytes + random() % (damaged.size() - kJournalHeaderBytes)] =
          static_cast<std::byte>(random());
    damaged.resize(kJournalHeaderBytes + random() % (damaged.size() - kJournalHeaderBytes));
    const JournalContent content = read(damaged);
    EXPECT_LE(content.frames.size(), 3U);
    EXPECT_LE(content.end, damaged.size() + kFrameAlignment + 4096);
  }
}

}  // namespace
}  // namespace sw::storage
