// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Texts that users, guests and requests send: base64, UTF-8, percent-encoding, durations, sizes,
// names, paths.

#include <optional>

#include "base/base64.h"
#include "cli/units.h"
#include "fuzz/fuzz.h"
#include "protocol/messages.h"
#include "sandbox_workers/base/utf8.h"
#include "sandbox_workers/wasi/file_system.h"
#include "sandbox_workers/workspace/workspace.h"

namespace sw::fuzz {
namespace {

/// By the bits, where the code under test goes by the table of the Unicode Standard.
std::optional<std::size_t> reference_invalid_utf8(std::string_view text) {
  static constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
    std::size_t length = 1;
    while (length < 5 && (byte(at) & (0x80U >> length)) != 0) ++length;
    if (byte(at) < 0x80) {
      ++at;
      continue;
    }
    if (length == 1 || length > 4 || length > text.size() - at) return at;
    std::uint32_t point = byte(at) & (0x7FU >> length);
    for (std::size_t i = 1; i < length; ++i) {
      if ((byte(at + i) & 0xC0U) != 0x80U) return at;
      point = (point << 6U) | (byte(at + i) & 0x3FU);
    }
    if (point < kLeast[length] || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000))
      return at;
    at += length;
  }
  return std::nullopt;
}

void check_utf8(std::string_view text) {
  const auto invalid = first_invalid_utf8(text);
  require(invalid == reference_invalid_utf8(text), "both find the same first invalid byte");
  const std::string valid = to_valid_utf8(text);
  require(!first_invalid_utf8(valid), "what is made valid is valid");
  if (!invalid) require(valid == text, "valid text stays as it is");
  else require(valid.starts_with(text.substr(0, *invalid)), "the valid beginning stays");
}

/// Six bits a digit. Nothing for what is no base64.
std::optional<std::string> reference_base64(std::string_view text) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  std::size_t digits = 0;
  std::size_t padding = 0;
  for (const char c : text) {
    if (std::string_view(" \t\n\r\f").find(c) != std::string_view::npos) continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const std::size_t value = kDigits.find(c);
    if (value == std::string_view::npos || padding != 0) return std::nullopt;
    bits = (bits << 6U) | static_cast<std::uint32_t>(value);
    ++digits;
    if (digits % 4 != 1) bytes += static_cast<char>((bits >> ((4 - digits % 4) % 4 * 2)) & 0xFFU);
  }
  if (digits % 4 == 1 || padding > 2) return std::nullopt;
  if (padding != 0 && (digits + padding) % 4 != 0) return std::nullopt;
  return bytes;
}

void check_base64(BytesView input) {
  const std::string text = base64_encode(input);
  const auto back = base64_decode(text);
  require(back && std::ranges::equal(*back, input), "what is encoded is decoded again");
  const auto decoded = base64_decode(as_text(input));
  const auto reference = reference_base64(as_text(input));
  require(decoded.has_value() == reference.has_value(), "both take it for base64, or neither");
  if (decoded) require(as_text(*decoded) == *reference, "both decode it alike");
}

void check_units(std::string_view text) {
  if (const auto bytes = cli::parse_bytes(text); bytes.ok()) {
    require(*bytes >= 1 && *bytes <= std::uint64_t{4} << 30U, "a size is within its bounds");
    require(cli::parse_bytes(std::to_string(*bytes)).value() == *bytes, "a size is read again");
  }
  if (const auto time = cli::parse_duration(text); time.ok()) {
    require(time->count() >= 0, "a duration is not negative");
    require(time->count() != 0 || text == "none", "only no limit is zero");
  }
}

void check_paths(const std::string& text) {
  const std::string path = wasi::FileSystem::normalize("/workspace", text);
  require(path.front() == '/' && (path + "/").find("/../") == std::string::npos,
          "a normalized path is plain", path);
  require(path.size() == 1 || (path.find("//") == std::string::npos && path.back() != '/'),
          "without more slashes");
  require(wasi::FileSystem::normalize("/", path) == path, "a normalized path stays as it is");
  const auto below = Workspace::normalize(text);
  if (!below.ok()) return;
  require(*below == "/workspace" || below->starts_with("/workspace/"), "it does not lead out",
          *below);
  require(Workspace::normalize(*below).value() == *below, "a workspace's path stays as it is");
}

}  // namespace

SW_FUZZ(encodings) {
  const std::string text(as_text(input));
  check_utf8(text);
  check_base64(input);
  check_units(text);
  check_paths(text);
  require(protocol::percent_decoded(protocol::percent_encoded(text)) == text,
          "what is encoded is decoded again");
  (void)protocol::percent_decoded(text);
}

}  // namespace sw::fuzz
