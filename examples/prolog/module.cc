// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "module.h"

#include <cstdint>
#include <string>

#include "sandbox_workers/base/sha256.h"

namespace prolog {

namespace {

// How the interpreter's module begins, in base64; the file has another module before it.
constexpr std::string_view kBegin = "AGFzbQEAAAABmAIp";
constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr char kSha256[] = "5d6fcf41b960b9ce1b3bab65acf25f02b531c880c9dc31eab8c58409caf7cf60";

sw::Error corrupt(std::string what) { return {sw::ErrorCode::kCorrupt, std::move(what)}; }

}  // namespace

sw::Result<sw::Bytes> module_within(std::string_view javascript) {
  const std::size_t begin = javascript.find(kBegin);
  if (begin == std::string_view::npos) return corrupt("the package holds no Prolog module");
  sw::Bytes bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : javascript.substr(begin)) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) break;
    bits = (bits << 6) | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<std::byte>(bits >> count & 0xFF));
  }
  if (sw::sha256_hex(bytes) != kSha256)
    return corrupt("the package's Prolog module is not the one expected");
  return bytes;
}

}  // namespace prolog
