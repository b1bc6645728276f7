// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "hostile/holes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sandbox_workers/base/utf8.h"

namespace sw::hostile {

namespace {

constexpr std::uint64_t kSizeMax = 3'000'000'000;
constexpr std::uint64_t kCountMax = 300'000;
constexpr std::string_view kMany = "many:";

constexpr std::array kIntegers = {"0",
                                  "1",
                                  "-1",
                                  "2",
                                  "7",
                                  "127",
                                  "255",
                                  "256",
                                  "65535",
                                  "65536",
                                  "1024",
                                  "2147483647",
                                  "2147483648",
                                  "-2147483648",
                                  "4294967295",
                                  "4294967296",
                                  "9007199254740993",
                                  "9223372036854775807",
                                  "-9223372036854775808",
                                  "18446744073709551616",
                                  "100",
                                  "-5",
                                  "3.5",
                                  "1e308"};
constexpr std::array kNames = {"x", "y", "mark", "f", "g"};
constexpr std::array kPaths = {"'/workspace/a'",
                               "'/tmp/b'",
                               "''",
                               "'/'",
                               "'..'",
                               "'.'",
                               "'/workspace'",
                               "'/tmp'",
                               "'/dev/zero'",
                               "'/dev/urandom'",
                               "'/dev/null'",
                               "'../../etc/passwd'",
                               "'/tmp/d/d/d'",
                               "'a/b/c'",
                               "'/workspace/l0'",
                               "'/proc/self/mem'",
                               "'/tmp/huge'",
                               "'/dev/stdout'",
                               "'/dev/full'",
                               "'a\\0b'"};
// What has a meaning within quotes in one of the languages is left out.
constexpr std::array kCharacters = {"a", "b",  "Z",    "0",      " ",      "ä",      "ß",
                                    "€", "中", "🦀", "\u0301", "\u202e", "\u2028", "\ufeff",
                                    "-", "(",  "%s",   "é",      "\u0007", "\u200d"};

std::string long_path(Dice& dice) {
  std::string path = "'/tmp";
  const std::uint64_t parts = dice.magnitude(200);
  for (std::uint64_t i = 0; i < parts; ++i) path += '/' + std::string(dice.magnitude(300), 'n');
  return path + "'";
}

std::string text(Dice& dice) {
  std::string text;
  for (std::uint64_t i = dice.magnitude(30); i > 0; --i) text += dice.pick(kCharacters);
  return text;
}

std::string milliseconds(Dice& dice) {
  return std::to_string(dice.one_in(20) ? 1'000'000 : dice.below(20));
}

void append_utf8(std::string& to, std::uint32_t point) {
  const auto byte = [&](std::uint32_t value) { to += static_cast<char>(value); };
  if (point < 0x80) return byte(point);
  if (point < 0x800) return byte(0xC0 | point >> 6), byte(0x80 | (point & 0x3F));
  if (point < 0x10000) {
    byte(0xE0 | point >> 12);
  } else {
    byte(0xF0 | point >> 18);
    byte(0x80 | (point >> 12 & 0x3F));
  }
  byte(0x80 | (point >> 6 & 0x3F));
  byte(0x80 | (point & 0x3F));
}

struct Hole {
  std::string_view name;
  std::string (*fill)(Dice&);
};

constexpr std::array kHoles = {
    Hole{"int",
         [](Dice& dice) {
           return dice.one_in(3) ? std::to_string(dice.magnitude(1'000'000))
                                 : std::string(dice.pick(kIntegers));
         }},
    Hole{"size", [](Dice& dice) { return std::to_string(dice.magnitude(kSizeMax)); }},
    Hole{"count", [](Dice& dice) { return std::to_string(dice.magnitude(kCountMax)); }},
    Hole{"small", [](Dice& dice) { return std::to_string(dice.between(1, 20)); }},
    Hole{"fd",
         [](Dice& dice) {
           return std::to_string(dice.one_in(4) ? dice.magnitude(5000) : dice.below(8));
         }},
    Hole{"ms", milliseconds},
    Hole{"secs", [](Dice& dice) { return milliseconds(dice) + "e-3"; }},
    Hole{"name", [](Dice& dice) { return std::string(dice.pick(kNames)); }},
    Hole{"path",
         [](Dice& dice) {
           return dice.one_in(10) ? long_path(dice) : std::string(dice.pick(kPaths));
         }},
    Hole{"utf8", text},
};

std::size_t boundary(const std::string& text, std::uint64_t at) {
  std::size_t place = std::min<std::size_t>(at, text.size());
  while (place < text.size() && (static_cast<unsigned char>(text[place]) & 0xC0) == 0x80) ++place;
  return place;
}

/// Somewhere in the text, and not far behind it.
std::pair<std::size_t, std::size_t> range(Dice& dice, const std::string& text) {
  const std::size_t begin = boundary(text, dice.below(text.size() + 1));
  const std::size_t end = boundary(text, begin + dice.magnitude(60));
  return {begin, end - begin};
}

void mutate(Dice& dice, std::string& text, const std::vector<std::string>& cells) {
  const auto [at, length] = range(dice, text);
  switch (dice.below(6)) {
    case 0: text.erase(at, length); break;
    case 1: {
      const std::string piece = text.substr(at, length);
      for (std::uint64_t i = dice.magnitude(64); i > 0; --i) text.insert(at, piece);
      break;
    }
    case 2: {
      const std::string& other = dice.pick(cells);
      const auto [from, bytes] = range(dice, other);
      text.replace(at, length, other.substr(from, bytes));
      break;
    }
    case 3: text.insert(at, 1, static_cast<char>(dice.between(0x20, 0x7E))); break;
    case 4: text.insert(at, dice.pick(kCharacters)); break;
    case 5: text.replace(at, length, *fill_hole(dice, "int")); break;
    default: break;
  }
}

}  // namespace

std::optional<std::string> fill_hole(Dice& dice, std::string_view hole) {
  if (hole.starts_with(kMany)) {
    const std::string_view what = hole.substr(kMany.size());
    const std::uint64_t times = dice.magnitude(std::max<std::uint64_t>(100'000 / what.size(), 1));
    std::string text;
    for (std::uint64_t i = 0; i < times; ++i) text += what;
    return text;
  }
  const auto* found = std::ranges::find(kHoles, hole, &Hole::name);
  if (found == kHoles.end()) return std::nullopt;
  return found->fill(dice);
}

bool is_hole(std::string_view hole) {
  return hole.starts_with(kMany) || hole == "mutated" || hole == "garbage" || hole == "code" ||
         std::ranges::find(kHoles, hole, &Hole::name) != kHoles.end();
}

std::string garbage(Dice& dice) {
  std::string text = "1";  // blank code is refused
  for (std::uint64_t i = dice.magnitude(5000); i > 0; --i) {
    if (!dice.one_in(3)) {
      text += static_cast<char>(dice.between(0x09, 0x7F));
      continue;
    }
    const auto point = static_cast<std::uint32_t>(dice.magnitude(0x10FFFF));
    append_utf8(text, point >= 0xD800 && point < 0xE000 ? 0xFFFD : point);
  }
  return text;
}

std::string mutated(Dice& dice, const std::vector<std::string>& cells) {
  std::string text = dice.pick(cells);
  for (std::uint64_t i = dice.magnitude(8); i > 0; --i) mutate(dice, text, cells);
  return "1\n" + to_valid_utf8(text);
}

}  // namespace sw::hostile
