// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace sw::sandbox {
namespace {

using testing::HasSubstr;

/// Gives at most `step` bytes at once.
ReadBytes reading(const Bytes& bytes, std::size_t step = SIZE_MAX) {
  return [&bytes, step,
          used = std::size_t{0}](std::span<std::byte> buffer) mutable -> Result<std::size_t> {
    const std::size_t now = std::min({step, buffer.size(), bytes.size() - used});
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(used), now, buffer.begin());
    used += now;
    return now;
  };
}

Bytes sample(std::size_t value_bytes = 5) {
  Bytes out;
  const WriteBytes write = [&](BytesView bytes) -> Result<void> {
    out.insert(out.end(), bytes.begin(), bytes.end());
    return {};
  };
  ArchiveWriter archive(write);
  EXPECT_TRUE(archive.about("{}").ok());
  EXPECT_TRUE(archive.object("", 1).ok());
  EXPECT_TRUE(archive.row(2, "key", Bytes(value_bytes, std::byte{7})).ok());
  EXPECT_TRUE(archive.object("PYTHON", 3).ok());
  EXPECT_TRUE(archive.row(0x61, std::string("\0k", 2), {}).ok());
  EXPECT_TRUE(archive.end().ok());
  return out;
}

/// The kinds of the records, as long as they can be read, and then what was wrong.
std::string read_all(const ReadBytes& read) {
  ArchiveReader archive(read);
  std::string kinds;
  while (true) {
    const auto record = archive.next();
    if (!record.ok()) return kinds + " " + record.error().message;
    kinds += "EAOR"[record->index()];
    if (record->index() == 0) return kinds;
  }
}

TEST(Archive, IsReadAsItWasWritten) {
  for (const std::size_t value_bytes : {std::size_t{0}, std::size_t{5}, std::size_t{300'000}}) {
    const Bytes bytes = sample(value_bytes);
    EXPECT_EQ(read_all(reading(bytes)),
              "AOROR"
              "E");
    EXPECT_EQ(read_all(reading(bytes, 7)),
              "AOROR"
              "E");
    const ReadBytes read = reading(bytes, 1000);
    ArchiveReader archive(read);
    EXPECT_EQ(std::get<ArchiveAbout>(*archive.next()).text, "{}");
    EXPECT_EQ(std::get<ArchiveObject>(*archive.next()).schema, 1U);
    const auto row = std::get<ArchiveRow>(*archive.next());
    EXPECT_EQ(row.table, 2);
    EXPECT_EQ(row.key, "key");
    EXPECT_EQ(row.value, Bytes(value_bytes, std::byte{7}));
    EXPECT_EQ(std::get<ArchiveObject>(*archive.next()).binding, "PYTHON");
    EXPECT_EQ(std::get<ArchiveRow>(*archive.next()).key, std::string("\0k", 2));
  }
}

TEST(Archive, WhatIsCutOffIsDamaged) {
  const Bytes whole = sample();
  for (std::size_t size = 12; size < whole.size(); ++size) {
    const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THAT(read_all(reading(part)), HasSubstr("ends too early")) << size;
  }
}

TEST(Archive, EveryFlippedBitIsNoticed) {
  const Bytes whole = sample();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      Bytes flipped = whole;
      flipped[at] ^= std::byte{1} << bit;
      EXPECT_THAT(read_all(reading(flipped)), HasSubstr(" ")) << at << " " << bit;
    }
  }
}

TEST(Archive, LengthsThatAreNotThereTakeNoMemory) {
  Bytes bytes = sample();
  bytes.resize(12);
  for (const unsigned byte : {0x52U, 2U, 0U, 1U, 0U, 0U, 0U, 0U, 0U, 0U, 0x10U, 0x61U}) {
    bytes.push_back(static_cast<std::byte>(byte));
  }
  EXPECT_THAT(read_all(reading(bytes)), HasSubstr("ends too early"));
  bytes[bytes.size() - 2] = std::byte{0xff};
  EXPECT_THAT(read_all(reading(bytes)), HasSubstr("a length is too large"));
}

TEST(Archive, OtherFilesAndLaterVersionsAreRefused) {
  const Bytes text(100, std::byte{'x'});
  EXPECT_THAT(read_all(reading(text)), HasSubstr("not an exported sandbox"));
  EXPECT_THAT(read_all(reading(Bytes())), HasSubstr("not an exported sandbox"));
  Bytes later = sample();
  later[8] = std::byte{9};
  EXPECT_THAT(read_all(reading(later)), HasSubstr("format version 9"));
}

TEST(Archive, NoiseIsRefused) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    Bytes bytes = sample();
    bytes.resize(12);
    for (int k = 0; k < 60; ++k)
      bytes.push_back(static_cast<std::byte>(random() % (k < 3 ? 90 : 4)));
    EXPECT_THAT(read_all(reading(bytes)), HasSubstr(" "));
  }
}

TEST(Archive, AWriterThatFailsEndsIt) {
  const WriteBytes full = [](BytesView) {
    return Result<void>(Error{ErrorCode::kNoSpace, "full"});
  };
  ArchiveWriter archive(full);
  EXPECT_TRUE(archive.about("{}").ok());
  EXPECT_EQ(archive.end().error().message, "full");
}

}  // namespace
}  // namespace sw::sandbox
