// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/javascript/guest_text.h"

#include <algorithm>
#include <utility>

#include "base/pieces.h"
#include "engine/javascript/text.h"
#include "sandbox_workers/engine/language.h"

namespace sw::engine::javascript {

namespace {

/// Calls `take` with the text piece by piece, repaired.
template <class Take>
Result<void> repaired(const QuickJs& js, BytesView bytes, Take take) {
  return in_pieces(js.cancellation(), as_text(bytes), [&](std::string_view piece) {
    if (first_invalid_utf8(piece)) take(std::string_view(to_valid_utf8(piece)));
    else take(piece);
  });
}

struct Repair {
  bool needed = false;
  std::size_t size = 0;  // of what is repaired
};

Result<Repair> look_at(const QuickJs& js, BytesView bytes) {
  Repair repair;
  SW_CHECK_OK(repaired(js, bytes, [&](std::string_view piece) {
    // A piece that is right comes as it lies there.
    repair.needed |= as_bytes(piece).data() < bytes.data() ||
                     as_bytes(piece).data() >= bytes.data() + bytes.size();
    repair.size += piece.size();
  }));
  return repair;
}

}  // namespace

Result<GuestText> GuestText::of(QuickJs& js, JsValue value) {
  SW_TRY(const std::uint32_t address,
         js.instance().call(js.exports().to_cstring, js.anchors().context, js.anchors().scratch,
                            value.bits, 0));
  if (address == 0) {
    SW_TRY(const JsValue problem, js.take_exception());
    SW_CHECK_OK(js.free(problem));
    return Error{ErrorCode::kLimitExceeded, "the guest has no memory left for a text", 0};
  }
  const auto size = js.memory().load<std::uint32_t>(js.anchors().scratch);
  if (!size || !js.memory().range(address, *size)) {
    return Error{ErrorCode::kCorrupt, "the guest gave an address outside its memory", 0};
  }
  return GuestText(js, address, *size);
}

GuestText::GuestText(GuestText&& other) noexcept
    : js_(other.js_),
      address_(std::exchange(other.address_, 0)),
      size_(std::exchange(other.size_, 0)) {}

GuestText::~GuestText() {
  // A guest that is gone needs no bookkeeping.
  if (address_ != 0)
    (void)js_.instance().call(js_.exports().free_cstring, js_.anchors().context, address_);
}

std::string_view GuestText::view() const {
  const auto bytes = js_.memory().range(address_, size_);
  return bytes ? as_text(*bytes) : std::string_view();
}

Result<void> GuestText::replace_lone_surrogates() {
  // Only the text of a string with wide characters has any, and that is a copy of the string.
  const auto bytes = js_.memory().range(address_, size_);
  if (!bytes) return {};
  auto* const begin = reinterpret_cast<char*>(bytes->data());
  return in_pieces(js_.cancellation(), as_text(*bytes), [&](std::string_view piece) {
    javascript::replace_lone_surrogates(std::span(begin + (piece.data() - begin), piece.size()));
  });
}

Result<std::string> GuestText::copy(std::size_t bytes_max) const {
  return static_cast<Guest&>(js_.instance().host()).copy_out(as_bytes(view().substr(0, bytes_max)));
}

Result<std::string> GuestText::quoted(std::size_t bytes_max) {
  SW_CHECK_OK(replace_lone_surrogates());
  const std::string_view text = view().substr(0, bytes_max);
  std::size_t escapes = 0;
  SW_CHECK_OK(in_pieces(js_.cancellation(), text, [&](std::string_view piece) {
    for (const char c : piece) escapes += c == '\\' || c == '\'' ? 1U : 0U;
  }));
  const std::size_t size = text.size() + escapes + 2;
  SW_CHECK_OK(js_.instance().charge(size));
  std::string quoted = "'";
  quoted.reserve(size);
  SW_CHECK_OK(in_pieces(js_.cancellation(), text,
                        [&](std::string_view piece) { append_escaped(quoted, piece); }));
  quoted += '\'';
  return quoted;
}

Result<GuestBlock> GuestBlock::allocate(QuickJs& js, std::size_t bytes) {
  SW_TRY(const std::uint32_t address, js.allocate(bytes));
  if (address == 0)
    return Error{ErrorCode::kLimitExceeded, "the guest has no memory left for the host's data", 0};
  if (!js.memory().range(address, bytes)) {
    return Error{ErrorCode::kCorrupt, "the guest gave an address outside its memory", 0};
  }
  return GuestBlock(js, address, bytes);
}

GuestBlock::GuestBlock(GuestBlock&& other) noexcept
    : js_(other.js_),
      address_(std::exchange(other.address_, 0)),
      size_(std::exchange(other.size_, 0)) {}

GuestBlock& GuestBlock::operator=(GuestBlock&& other) noexcept {
  std::swap(js_, other.js_);
  std::swap(address_, other.address_);
  std::swap(size_, other.size_);
  return *this;
}

GuestBlock::~GuestBlock() {
  if (address_ != 0) (void)js_->deallocate(address_);
}

std::span<std::byte> GuestBlock::bytes() const {
  return js_->memory().range(address_, size_).value_or(std::span<std::byte>());
}

Result<JsValue> new_valid_string(QuickJs& js, BytesView bytes) {
  SW_TRY(const Repair repair, look_at(js, bytes));
  if (!repair.needed) return js.new_string(as_text(bytes));
  SW_TRY(const GuestBlock block, GuestBlock::allocate(js, repair.size));
  std::byte* to = block.bytes().data();
  SW_CHECK_OK(repaired(
      js, bytes, [&](std::string_view piece) { to = std::ranges::copy(as_bytes(piece), to).out; }));
  return js.new_string(as_text(block.bytes()));
}

Result<std::string> valid_text(QuickJs& js, BytesView bytes) {
  SW_TRY(const Repair repair, look_at(js, bytes));
  SW_CHECK_OK(js.instance().charge(repair.size));
  std::string text;
  text.reserve(repair.size);
  SW_CHECK_OK(repaired(js, bytes, [&](std::string_view piece) { text += piece; }));
  return text;
}

}  // namespace sw::engine::javascript
