// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>

namespace sw::cli {

namespace {

struct Number {
  double value = 0;
  std::string_view unit;
};

std::optional<Number> split(std::string_view text) {
  Number number;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number.value);
  if (error != std::errc{} || !std::isfinite(number.value) || number.value < 0) return std::nullopt;
  number.unit = text.substr(static_cast<std::size_t>(end - text.data()));
  return number;
}

struct Unit {
  std::string_view name;
  double factor;
};

std::optional<double> scale(std::string_view text, std::span<const Unit> units, double largest) {
  const auto number = split(text);
  if (!number) return std::nullopt;
  for (const Unit& unit : units) {
    if (unit.name != number->unit) continue;
    const double scaled = number->value * unit.factor;
    if (scaled <= largest) return scaled;
  }
  return std::nullopt;
}

}  // namespace

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  static constexpr std::array<Unit, 6> kUnits = {
      {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"m", 60e9}, {"h", 3600e9}}};
  constexpr double kLargest = 100 * 365.0 * 86400 * 1e9;
  if (text == "none") return std::chrono::nanoseconds::zero();
  const auto ns = scale(text, kUnits, kLargest);
  if (!ns || *ns < 1) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("invalid duration '{}' (examples: 10s, 500ms, 2m, none)", text), 0};
  }
  return std::chrono::nanoseconds(static_cast<std::int64_t>(*ns));
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  static constexpr std::array<Unit, 4> kUnits = {
      {{"", 1}, {"K", 1024.0}, {"M", 1024.0 * 1024}, {"G", 1024.0 * 1024 * 1024}}};
  constexpr double kLargest = 4.0 * 1024 * 1024 * 1024;  // what a 32-bit memory can have
  const auto bytes = scale(text, kUnits, kLargest);
  if (!bytes || *bytes < 1) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("invalid size '{}' (at most 4G; examples: 512M, 1G, 64K)", text), 0};
  }
  return static_cast<std::uint64_t>(*bytes);
}

std::string show_bytes(std::uint64_t bytes) {
  if (bytes >= 10'000'000) return fmt::format("{} MB", (bytes + 500'000) / 1'000'000);
  if (bytes >= 100'000) return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
  return fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3);
}

}  // namespace sw::cli
