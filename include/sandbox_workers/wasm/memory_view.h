// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

namespace sw::wasm {

/// The bytes of a guest's linear memory. Every access is checked in 64 bits against the size.
/// Lifetime: until the next call into the guest, which may grow the memory; take it afresh after
/// one.
/// Trust: the guest wrote the content. Copy out first, then validate the copy.
class MemoryView {
 public:
  MemoryView() = default;
  explicit MemoryView(std::span<std::byte> bytes) : bytes_(bytes) {}

  std::span<std::byte> bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }

  /// `length` bytes at `address`, or nullopt when they do not all lie inside the memory.
  std::optional<std::span<std::byte>> range(std::uint32_t address, std::uint64_t length) const {
    if (length > bytes_.size() || address > bytes_.size() - length) return std::nullopt;
    return bytes_.subspan(address, static_cast<std::size_t>(length));
  }

  /// Reads a little-endian T (this project runs on little-endian hosts only).
  template <class T>
  std::optional<T> load(std::uint32_t address) const {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto from = range(address, sizeof(T));
    if (!from) return std::nullopt;
    T value;
    std::memcpy(&value, from->data(), sizeof(T));
    return value;
  }

  /// Writes a little-endian T; false when it does not fit inside the memory.
  template <class T>
  [[nodiscard]] bool store(std::uint32_t address, const T& value) const {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto to = range(address, sizeof(T));
    if (!to) return false;
    std::memcpy(to->data(), &value, sizeof(T));
    return true;
  }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace sw::wasm
