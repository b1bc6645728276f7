// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Texts of any size on their way between the guest and the host: looked at where they lie, in
// pieces.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/javascript/quickjs.h"
#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"

namespace sw::engine::javascript {

/// A value's text as UTF-8 in the guest's memory, with a NUL behind it. Lone surrogates are three
/// bytes each, unless they are replaced.
class GuestText {
 public:
  /// Errors: kLimitExceeded when the guest has no room for it.
  static Result<GuestText> of(QuickJs& js, JsValue value);
  GuestText(GuestText&& other) noexcept;
  GuestText& operator=(GuestText&&) = delete;
  ~GuestText();

  std::uint32_t address() const { return address_; }
  std::string_view view() const;
  /// Each lone surrogate becomes U+FFFD.
  Result<void> replace_lone_surrogates();
  /// Its first `bytes_max` bytes, on the host; they are charged to the guest.
  Result<std::string> copy(std::size_t bytes_max) const;
  /// The same between quotes, as a REPL shows a string, without lone surrogates.
  Result<std::string> quoted(std::size_t bytes_max);

 private:
  GuestText(QuickJs& js, std::uint32_t address, std::uint32_t size)
      : js_(js), address_(address), size_(size) {}

  QuickJs& js_;
  std::uint32_t address_;
  std::uint32_t size_;
};

/// Memory of the guest's heap that the host fills.
class GuestBlock {
 public:
  /// Errors: kLimitExceeded when the guest has no memory left.
  static Result<GuestBlock> allocate(QuickJs& js, std::size_t bytes);
  GuestBlock(GuestBlock&& other) noexcept;
  GuestBlock& operator=(GuestBlock&& other) noexcept;
  ~GuestBlock();

  std::span<std::byte> bytes() const;

 private:
  GuestBlock(QuickJs& js, std::uint32_t address, std::size_t size)
      : js_(&js), address_(address), size_(size) {}

  QuickJs* js_;
  std::uint32_t address_;
  std::size_t size_;
};

/// A string of bytes of the host's or the guest's. What is not UTF-8 becomes U+FFFD.
Result<JsValue> new_valid_string(QuickJs& js, BytesView bytes);

/// The same, on the host; charged to the guest.
Result<std::string> valid_text(QuickJs& js, BytesView bytes);

}  // namespace sw::engine::javascript
