// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "sandbox_workers/base/files.h"

namespace sw::wasi {

/// Little-endian values one after another; texts and byte strings are preceded by their length.
class ByteWriter {
 public:
  template <class T>
  void put(T value) {
    static_assert(std::is_integral_v<T>);
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof(T));
  }
  void put_bytes(BytesView bytes) {
    put(static_cast<std::uint64_t>(bytes.size()));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void put_text(std::string_view text) { put_bytes(as_bytes(text)); }
  Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

/// Reads what ByteWriter wrote, from a source that may be hostile: past the end everything is zero
/// or empty and `good` is false. Never allocates more than what is there.
class ByteReader {
 public:
  explicit ByteReader(BytesView bytes) : rest_(bytes) {}

  template <class T>
  T get() {
    static_assert(std::is_integral_v<T>);
    T value{};
    if (rest_.size() < sizeof(T)) {
      fail();
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }
  BytesView get_bytes() {
    const auto size = get<std::uint64_t>();
    if (size > rest_.size()) {
      fail();
      return {};
    }
    const BytesView bytes = rest_.first(static_cast<std::size_t>(size));
    rest_ = rest_.subspan(bytes.size());
    return bytes;
  }
  std::string get_text() { return std::string(as_text(get_bytes())); }
  /// A number of items that follow, each at least `bytes_each` long.
  std::uint32_t get_count(std::size_t bytes_each) {
    const auto count = get<std::uint32_t>();
    if (count > rest_.size() / bytes_each) {
      fail();
      return 0;
    }
    return count;
  }

  void fail() {
    good_ = false;
    rest_ = {};
  }
  bool good() const { return good_; }
  bool at_end() const { return rest_.empty(); }

 private:
  BytesView rest_;
  bool good_ = true;
};

}  // namespace sw::wasi
