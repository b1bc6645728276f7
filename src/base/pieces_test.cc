// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "base/pieces.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sw {
namespace {

TEST(Pieces, CoverTheWholeInOrder) {
  std::vector<int> whole(3 * kPieceBytes + 5, 1);
  std::size_t seen = 0;
  std::size_t pieces = 0;
  const auto done = in_pieces(nullptr, std::span(whole), [&](std::span<int> piece) {
    EXPECT_EQ(piece.data(), whole.data() + seen);
    EXPECT_LE(piece.size(), kPieceBytes);
    seen += piece.size();
    ++pieces;
  });
  EXPECT_TRUE(done.ok());
  EXPECT_EQ(seen, whole.size());
  EXPECT_EQ(pieces, 4u);
}

TEST(Pieces, AStopEndsTheWorkBeforeTheNextOne) {
  const auto cancellation = Cancellation::create().value();
  const std::string whole(5 * kPieceBytes, 'x');
  std::size_t seen = 0;
  const auto done =
      in_pieces(cancellation.get(), std::string_view(whole), [&](std::string_view piece) {
        seen += piece.size();
        if (seen > kPieceBytes) cancellation->cancel();
      });
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::kGuestStopped);
  EXPECT_EQ(seen, 2 * kPieceBytes);
}

TEST(Pieces, TheWorkMayEndItself) {
  const std::string whole(5 * kPieceBytes, 'x');
  int calls = 0;
  const auto done = in_pieces(nullptr, std::string_view(whole),
                              [&](std::string_view) -> Result<bool> { return ++calls < 2; });
  EXPECT_TRUE(done.ok());
  EXPECT_EQ(calls, 2);
}

TEST(Pieces, NoPieceOfTextEndsWithinASequence) {
  std::string whole;
  while (whole.size() < 2 * kPieceBytes) whole += "世";
  std::string again;
  ASSERT_TRUE(in_pieces(nullptr, std::string_view(whole), [&](std::string_view piece) {
                EXPECT_EQ(piece.size() % 3, 0u);
                again += piece;
              }).ok());
  EXPECT_EQ(again, whole);
}

TEST(Pieces, NothingHasNone) {
  const auto cancellation = Cancellation::create().value();
  cancellation->cancel();
  EXPECT_TRUE(
      in_pieces(cancellation.get(), std::string_view(), [](std::string_view) { FAIL(); }).ok());
}

}  // namespace
}  // namespace sw
