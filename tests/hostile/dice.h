// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>

namespace sw::hostile {

/// Random draws. A seed gives the same draws everywhere, which the standard's distributions do not
/// promise.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}

  /// 0 … n-1
  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : engine_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  /// low … high, both included
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + below(high - low + 1);
  }
  /// 1 … max; each order of magnitude is as likely as the others.
  std::uint64_t magnitude(std::uint64_t max) {
    const std::uint64_t bits = below(static_cast<std::uint64_t>(std::bit_width(max)));
    const std::uint64_t low = std::uint64_t{1} << bits;
    return low + below(low < max - low + 1 ? low : max - low + 1);
  }
  template <class Items>
  auto& pick(Items& items) {
    return items[static_cast<std::size_t>(below(items.size()))];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace sw::hostile
