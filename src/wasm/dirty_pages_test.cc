// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasm/dirty_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <random>
#include <vector>

#include "wasm/test_guest.h"

namespace sw::wasm {
namespace {

using ::testing::IsEmpty;

/// A private mapping of a random image, followed by anonymous memory, as a slot has it.
struct Mapping {
  std::shared_ptr<const Image> image;
  std::span<std::byte> memory;

  explicit Mapping(std::mt19937& random) {
    Bytes content(16 * kWasmPageBytes);
    for (std::byte& byte : content) byte = static_cast<std::byte>(random());
    image = image_of(content);
    const std::size_t size = 2 * content.size();
    auto* base = static_cast<std::byte*>(
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(::mmap(base, content.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
                     image->fd(), 0),
              base);
    memory = {base, size};
  }
  ~Mapping() { ::munmap(memory.data(), memory.size()); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
};

std::vector<ByteRange> scan(DirtyMethod method, const Mapping& mapping) {
  std::vector<ByteRange> ranges;
  auto scanner = DirtyPageScanner::create(method);
  EXPECT_TRUE(scanner.ok() &&
              (*scanner)->scan(mapping.memory, mapping.image->bytes(), ranges).ok());
  return ranges;
}

bool covers(const std::vector<ByteRange>& outer, const std::vector<ByteRange>& inner) {
  return std::ranges::all_of(inner, [&](const ByteRange& range) {
    return std::ranges::any_of(
        outer, [&](const ByteRange& o) { return o.begin <= range.begin && range.end <= o.end; });
  });
}

TEST(DirtyPages, TheThreeMethodsAgree) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  if (!DirtyPageScanner::create(DirtyMethod::kPagemapScan).ok()) {
    // An older kernel: the fast method must say so and the others must still agree.
    EXPECT_NE(DirtyPageScanner::create()->method(), DirtyMethod::kPagemapScan);
  }
  for (int round = 0; round < 20; ++round) {
    const Mapping mapping(random);
    for (int i = 0; i < 40; ++i) {
      const std::size_t at = random() % mapping.memory.size();
      if (random() % 3 == 0) {
        [[maybe_unused]] volatile std::byte read_only = mapping.memory[at];
      } else if (random() % 3 == 0) {
        volatile std::byte* same = &mapping.memory[at];  // written with the value it has
        *same = *same;
      } else {
        mapping.memory[at] ^= std::byte{1};
      }
    }
    // Comparing comes last: reading anonymous memory maps it, which the kernel counts as written.
    const auto read = scan(DirtyMethod::kPagemapRead, mapping);
    if (DirtyPageScanner::create(DirtyMethod::kPagemapScan).ok()) {
      EXPECT_EQ(scan(DirtyMethod::kPagemapScan, mapping), read);
    }
    EXPECT_TRUE(covers(read, scan(DirtyMethod::kCompare, mapping)));
  }
}

TEST(DirtyPages, AnUntouchedMappingIsClean) {
  std::mt19937 random(1);
  const Mapping mapping(random);
  EXPECT_THAT(scan(DirtyMethod::kPagemapRead, mapping), IsEmpty());
  EXPECT_THAT(scan(DirtyMethod::kCompare, mapping), IsEmpty());
}

TEST(DirtyPages, MoreRangesThanOneRequestHolds) {
  std::mt19937 random(1);
  Bytes content(4096 * kPageBytes);
  const auto image = image_of(content);
  auto* base = static_cast<std::byte*>(
      ::mmap(nullptr, content.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE, image->fd(), 0));
  for (std::size_t page = 0; page < 4096; page += 2) base[page * kPageBytes] = std::byte{1};
  std::vector<ByteRange> ranges;
  ASSERT_TRUE(
      DirtyPageScanner::create()->scan({base, content.size()}, image->bytes(), ranges).ok());
  EXPECT_EQ(ranges.size(), 2048u);
  ::munmap(base, content.size());
}

}  // namespace
}  // namespace sw::wasm
