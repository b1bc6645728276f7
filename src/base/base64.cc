// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "base/base64.h"

#include <openssl/evp.h>

#include <algorithm>

namespace sw {

namespace {

// A multiple of 3 bytes, so that only the last block is padded; OpenSSL counts in ints.
constexpr std::size_t kBlockBytes = std::size_t{3} << 20;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }

bool is_digit(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
         c == '/';
}

}  // namespace

std::string base64_encode(BytesView bytes) {
  std::string text;
  std::string block;
  while (!bytes.empty()) {
    const BytesView part = bytes.first(std::min(bytes.size(), kBlockBytes));
    bytes = bytes.subspan(part.size());
    block.resize((part.size() + 2) / 3 * 4 + 1);  // and a NUL
    const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(block.data()),
                                       reinterpret_cast<const unsigned char*>(part.data()),
                                       static_cast<int>(part.size()));
    text.append(block, 0, static_cast<std::size_t>(length));
  }
  return text;
}

std::optional<Bytes> base64_decode(std::string_view text) {
  std::string digits;
  digits.reserve(text.size() + 3);
  std::ranges::copy_if(text, std::back_inserter(digits), [](char c) { return !is_space(c); });
  std::size_t padding = 0;
  while (padding < 2 && digits.ends_with('=')) {
    digits.pop_back();
    ++padding;
  }
  if (!std::ranges::all_of(digits, is_digit)) return std::nullopt;
  const std::size_t missing = (4 - digits.size() % 4) % 4;
  if (missing == 3 || (padding != 0 && padding != missing)) return std::nullopt;
  digits.append(missing, '=');

  Bytes bytes;
  Bytes block(std::min(kBlockBytes, digits.size() / 4 * 3));
  for (std::string_view rest = digits; !rest.empty();) {
    const std::string_view part = rest.substr(0, kBlockBytes / 3 * 4);
    rest.remove_prefix(part.size());
    const int length = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(block.data()),
                                       reinterpret_cast<const unsigned char*>(part.data()),
                                       static_cast<int>(part.size()));
    if (length < 0) return std::nullopt;
    bytes.insert(bytes.end(), block.begin(), block.begin() + length);
  }
  // OpenSSL counts the padding as zeros. Not by `resize`: under TSan g++ warns of the growth that
  // it cannot rule out.
  bytes.erase(bytes.end() - static_cast<std::ptrdiff_t>(std::min(missing, bytes.size())),
              bytes.end());
  return bytes;
}

}  // namespace sw
