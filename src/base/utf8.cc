// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/base/utf8.h"

#include <cstdint>
#include <cstring>

namespace sw {

namespace {

struct Step {
  std::size_t length = 0;  ///< of the sequence, or of the part of it that is to be replaced
  bool valid = false;
};

/// The sequence at the start of `text`, by table 3-7 of the Unicode Standard. An invalid one ends
/// before the first byte that cannot continue it.
Step next(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {1, true};
  std::size_t length = 0;
  std::uint8_t low = 0x80;
  std::uint8_t high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) length = 2;
  else if (lead >= 0xE0 && lead <= 0xEF) length = 3;
  else if (lead >= 0xF0 && lead <= 0xF4) length = 4;
  else return {1, false};
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (std::size_t i = 1; i < length; ++i) {
    if (i >= text.size() || byte(i) < low || byte(i) > high) return {i, false};
    low = 0x80;
    high = 0xBF;
  }
  return {length, true};
}

/// How many bytes at the start are ASCII, found eight at a time.
std::size_t ascii_words(std::string_view text) {
  constexpr std::uint64_t kHighBits = 0x8080'8080'8080'8080;
  std::size_t at = 0;
  for (std::uint64_t word = 0; text.size() - at >= sizeof word; at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    if ((word & kHighBits) != 0) break;
  }
  return at;
}

}  // namespace

std::size_t whole_utf8_sequences(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text.size();
  // A sequence begins with a byte that does not continue one and has three more at most.
  for (std::size_t back = 0; back <= 3; ++back) {
    if ((static_cast<std::uint8_t>(text[bytes_max - back]) & 0xC0) != 0x80) return bytes_max - back;
  }
  return bytes_max;
}

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    at += ascii_words(text.substr(at));
    if (at == text.size()) break;
    const Step step = next(text.substr(at));
    if (!step.valid) return at;
    at += step.length;
  }
  return std::nullopt;
}

std::string to_valid_utf8(std::string_view bytes) {
  std::string result;
  result.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    if (const std::size_t ascii = ascii_words(bytes.substr(at)); ascii != 0) {
      result.append(bytes.substr(at, ascii));
      at += ascii;
      continue;
    }
    const Step step = next(bytes.substr(at));
    if (step.valid) result.append(bytes.substr(at, step.length));
    else result.append("\xEF\xBF\xBD");
    at += step.length;
  }
  return result;
}

}  // namespace sw
