// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/base/utf8.h"

#include <cstdint>

namespace sw {

namespace {

struct Step {
  std::size_t length = 0;  ///< of the sequence, or of the part of it that is to be replaced
  bool valid = false;
};

/// The sequence at the start of `text`, by table 3-7 of the Unicode Standard. An invalid one ends before the
/// first byte that cannot continue it.
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

}  // namespace

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
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
    const Step step = next(bytes.substr(at));
    if (step.valid) result.append(bytes.substr(at, step.length));
    else result.append("\xEF\xBF\xBD");
    at += step.length;
  }
  return result;
}

}  // namespace sw
