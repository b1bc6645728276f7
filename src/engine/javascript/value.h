// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace sw::engine::javascript {

/// A JavaScript value as this build of QuickJS holds it: 64 bits, the upper half a tag, or a number
/// whose bits are moved so that no tag is met. Plain bits: says nothing about who owns a reference
/// (see Owned).
struct JsValue {
  std::uint64_t bits = 0;

  /// Tags are small; whatever is none of them is a number.
  enum Tag : std::int32_t {
    kBigInt = -9,
    kSymbol = -8,
    kString = -7,
    kRope = -6,
    kModule = -3,
    kBytecode = -2,
    kObject = -1,
    kInt = 0,
    kBool = 1,
    kNull = 2,
    kUndefined = 3,
    kUninitialized = 4,
    kException = 6,
    kShortBigInt = 7,
    kFloat = 8,
  };

  static constexpr std::uint64_t kFloatShift = std::uint64_t{0x7FF8000A} << 32;

  static constexpr JsValue of(Tag tag, std::uint32_t payload = 0) {
    return {(std::uint64_t{static_cast<std::uint32_t>(tag)} << 32) | payload};
  }
  static constexpr JsValue undefined() { return of(kUndefined); }
  static constexpr JsValue exception() { return of(kException); }
  static constexpr JsValue boolean(bool value) { return of(kBool, value ? 1 : 0); }
  static JsValue number(double value) {
    const auto integer =
        static_cast<std::int32_t>(value >= -2147483648.0 && value <= 2147483647.0 ? value : 0);
    if (static_cast<double>(integer) == value &&
        std::bit_cast<std::uint64_t>(value) != std::uint64_t{1} << 63) {
      return of(kInt, static_cast<std::uint32_t>(integer));
    }
    // All the NaNs are one, or the bits of some would look like a tag.
    const std::uint64_t raw =
        value != value ? std::uint64_t{0x7FF80000} << 32 : std::bit_cast<std::uint64_t>(value);
    return {raw - kFloatShift};
  }

  Tag tag() const {
    const auto tag = static_cast<std::int32_t>(bits >> 32);
    return tag >= kBigInt && tag < kFloat ? static_cast<Tag>(tag) : kFloat;
  }
  std::uint32_t payload() const { return static_cast<std::uint32_t>(bits); }
  bool is(Tag wanted) const { return tag() == wanted; }
  bool is_string() const { return is(kString) || is(kRope); }
  bool is_number() const { return is(kInt) || is(kFloat); }
  double as_number() const {
    return is(kInt) ? static_cast<double>(static_cast<std::int32_t>(payload()))
                    : std::bit_cast<double>(bits + kFloatShift);
  }
  bool as_bool() const { return payload() != 0; }

  bool operator==(const JsValue&) const = default;
};

}  // namespace sw::engine::javascript
