// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "base/base64.h"

#include <gtest/gtest.h>

namespace sw {
namespace {

std::string decoded(std::string_view text) {
  const auto bytes = base64_decode(text);
  return bytes ? std::string(as_text(*bytes)) : "refused";
}

TEST(Base64, HasTheVectorsOfItsStandard) {
  const std::pair<std::string_view, std::string_view> vectors[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
      {std::string_view("\x00\xff\xfe", 3), "AP/+"}};
  for (const auto& [plain, coded] : vectors) {
    EXPECT_EQ(base64_encode(as_bytes(plain)), coded);
    EXPECT_EQ(decoded(coded), plain);
  }
}

TEST(Base64, CrossesItsBlocks) {
  for (const std::size_t size :
       {(std::size_t{3} << 20) - 1, (std::size_t{3} << 20), (std::size_t{3} << 20) + 1}) {
    std::string plain(size, '\0');
    for (std::size_t i = 0; i < size; ++i) plain[i] = static_cast<char>(i * 7 + i / 251);
    EXPECT_TRUE(decoded(base64_encode(as_bytes(plain))) == plain) << size;
  }
}

TEST(Base64, SkipsWhiteSpaceAndDoesWithoutPadding) {
  EXPECT_EQ(decoded(" Zm9v\r\nYg = =\n"), "foob");
  EXPECT_EQ(decoded("Zm9vYg"), "foob");
}

TEST(Base64, RefusesWhatIsNotBase64) {
  for (const char* text :
       {"Z", "Zm9vY", "Zm9v!", "Zm-_", "=", "Zg=", "Zm9v=", "Zm=9", "Zg===", "Zg==Zg=="}) {
    EXPECT_EQ(decoded(text), "refused") << text;
  }
}

}  // namespace
}  // namespace sw
