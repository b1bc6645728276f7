// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writing and reading of numbers and bytes. The reader takes its input for hostile: after the first
// thing that is wrong it only returns zeros, and `ok` is false. Loops over counts from the input
// end, because `count` is checked against the bytes that are left.

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "sandbox_workers/base/files.h"

namespace sw::snapshot {

class WireWriter {
 public:
  void u8(std::uint8_t value) { out_.push_back(static_cast<std::byte>(value)); }
  void u32(std::uint32_t value) { fixed(value); }
  void u64(std::uint64_t value) { fixed(value); }
  void varint(std::uint64_t value) {
    for (; value > 0x7f; value >>= 7U) u8(static_cast<std::uint8_t>(value | 0x80U));
    u8(static_cast<std::uint8_t>(value));
  }
  /// Small for numbers near zero on either side.
  void zigzag(std::int64_t value) {
    varint((static_cast<std::uint64_t>(value) << 1U) ^ static_cast<std::uint64_t>(value >> 63U));
  }
  void bytes(BytesView bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  void text(std::string_view text) {
    varint(text.size());
    bytes(as_bytes(text));
  }

  const Bytes& out() const { return out_; }
  Bytes take() { return std::move(out_); }

 private:
  template <class T>
  void fixed(T value) {
    for (std::size_t i = 0; i < sizeof value; ++i) u8(static_cast<std::uint8_t>(value >> (8 * i)));
  }
  Bytes out_;
};

class WireReader {
 public:
  explicit WireReader(BytesView in) : in_(in) {}

  std::uint8_t u8() {
    if (!need(1)) return 0;
    const auto value = static_cast<std::uint8_t>(in_[0]);
    in_ = in_.subspan(1);
    return value;
  }
  std::uint32_t u32() { return fixed<std::uint32_t>(); }
  std::uint64_t u64() { return fixed<std::uint64_t>(); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t byte = u8();
      if (shift == 63 && byte > 1) break;
      value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if (byte < 0x80) return value;
    }
    fail();
    return 0;
  }
  /// A varint of at most `max`.
  template <class T = std::uint32_t>
  T number(std::uint64_t max = std::numeric_limits<T>::max()) {
    const std::uint64_t value = varint();
    if (value > max) fail();
    return ok_ ? static_cast<T>(value) : T{0};
  }
  std::int64_t zigzag() {
    const std::uint64_t value = varint();
    return static_cast<std::int64_t>(value >> 1U) ^ -static_cast<std::int64_t>(value & 1U);
  }
  /// How many things follow, each of at least `bytes_min` (at least 1) bytes.
  std::size_t count(std::size_t max, std::size_t bytes_min = 1) {
    const auto value = number<std::size_t>(max);
    if (value > in_.size() / bytes_min) fail();
    return ok_ ? value : 0;
  }
  BytesView bytes(std::size_t count) {
    if (!need(count)) return {};
    const BytesView bytes = in_.first(count);
    in_ = in_.subspan(count);
    return bytes;
  }
  std::string text(std::size_t max) { return std::string(as_text(bytes(count(max)))); }

  bool ok() const { return ok_; }
  /// Everything was read and nothing was wrong.
  bool at_end() const { return ok_ && in_.empty(); }
  std::size_t left() const { return in_.size(); }
  void fail() {
    ok_ = false;
    in_ = {};
  }

 private:
  bool need(std::size_t count) {
    if (ok_ && count <= in_.size()) return true;
    fail();
    return false;
  }
  template <class T>
  T fixed() {
    if (!need(sizeof(T))) return 0;
    T value = 0;
    for (std::size_t i = 0; i < sizeof value; ++i) {
      value = static_cast<T>(value | (static_cast<T>(in_[i]) << (8 * i)));
    }
    in_ = in_.subspan(sizeof value);
    return value;
  }

  BytesView in_;
  bool ok_ = true;
};

}  // namespace sw::snapshot
