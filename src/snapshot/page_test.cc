// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace sw::snapshot {
namespace {

/// A page with about `count` bytes that are not zero, some of them side by side.
Page random_page(std::mt19937& random, std::size_t count) {
  Page page = {};
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = random() % kPageBytes;
    const std::size_t length = 1 + random() % 4;
    for (std::size_t j = at; j < std::min(at + length, kPageBytes); ++j)
      page[j] = static_cast<std::byte>(random());
  }
  return page;
}

std::size_t slow_difference(const Page& a, const Page& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < kPageBytes; ++i) count += a[i] != b[i] ? 1U : 0U;
  return count;
}

TEST(Page, CountsTheBytesThatDiffer) {
  std::mt19937 random(1);
  for (const std::size_t count : {0U, 1U, 7U, 300U, 4000U}) {
    const Page a = random_page(random, count);
    const Page b = random_page(random, count);
    EXPECT_EQ(difference(a, b), slow_difference(a, b));
  }
  Page full;
  full.fill(std::byte{0xff});
  EXPECT_EQ(difference(full, zero_page()), kPageBytes);
  EXPECT_EQ(difference(full, full), 0U);
}

TEST(Page, SparseDifferenceComesBack) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 500; ++i) {
    const Page before = random_page(random, 2000);
    const Page difference = random_page(random, random() % 300);
    Bytes sparse;
    Page after = before;
    xor_into(after, difference);
    ASSERT_TRUE(append_sparse(sparse, before, after, 3 * kPageBytes));
    ASSERT_TRUE(apply_sparse(after, sparse));
    ASSERT_EQ(after, before);
  }
}

TEST(Page, SparseDifferenceAtBothEndsOfThePage) {
  Page difference = {};
  difference.front() = std::byte{1};
  difference.back() = std::byte{2};
  Bytes sparse;
  ASSERT_TRUE(append_sparse(sparse, difference, zero_page(), kPageBytes));
  EXPECT_EQ(sparse.size(), 7U);
  Page page = {};
  ASSERT_TRUE(apply_sparse(page, sparse));
  EXPECT_EQ(page, difference);
}

TEST(Page, SparseDifferencePastItsLimitIsNotWritten) {
  std::mt19937 random(2);
  const Page difference = random_page(random, 1000);
  Bytes sparse = {std::byte{42}};
  EXPECT_FALSE(append_sparse(sparse, difference, zero_page(), 1024));
  EXPECT_EQ(sparse, Bytes{std::byte{42}});
}

TEST(Page, DamagedSparseDifferenceIsRefused) {
  Page page = {};
  const auto bytes = [](std::initializer_list<int> values) {
    Bytes out;
    for (const int value : values) out.push_back(static_cast<std::byte>(value));
    return out;
  };
  EXPECT_FALSE(apply_sparse(page, bytes({0})));                    // no length
  EXPECT_FALSE(apply_sparse(page, bytes({0, 0})));                 // an empty run
  EXPECT_FALSE(apply_sparse(page, bytes({0, 2, 1})));              // a run longer than the input
  EXPECT_FALSE(apply_sparse(page, bytes({0xff, 0x1f, 2, 1, 1})));  // one past the page's end
  EXPECT_FALSE(apply_sparse(page, bytes({0x80, 0x20, 1, 1})));     // begins at the page's end
  EXPECT_FALSE(apply_sparse(page, bytes({0xff, 0xff, 0xff, 1})));  // a number too long
  EXPECT_TRUE(apply_sparse(page, bytes({0xff, 0x1f, 1, 1})));      // the last byte
}

TEST(Page, RandomSparseInputNeverWritesOutsideThePage) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 20000; ++i) {
    Bytes input(random() % 40);
    for (std::byte& byte : input)
      byte = static_cast<std::byte>(random() % 3 == 0 ? 0xff : random());
    Page page = {};
    apply_sparse(page, input);  // the sanitizers watch
  }
}

TEST(Page, TransposedBytesComeBack) {
  std::mt19937 random(3);
  Bytes bytes(kPageBytes * 2);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (const std::size_t stride : {1U, 4U, 8U})
    EXPECT_EQ(untranspose(transpose(bytes, stride), stride), bytes);
  EXPECT_EQ(transpose(BytesView(bytes), 4)[1], bytes[4]);
}

}  // namespace
}  // namespace sw::snapshot
