// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the host works on data whose size a guest chose. Guest code is stopped from outside; code of
// the host is not, so it works on one piece after another and looks between two of them whether the
// run is to end.

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sandbox_workers/base/cancellation.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/base/utf8.h"

namespace sw {

/// Some milliseconds of the slowest work there is (decoding, hashing, random numbers).
inline constexpr std::size_t kPieceBytes = std::size_t{256} << 10;

/// kGuestStopped once the run was cancelled. Null: nobody can cancel it.
inline Result<void> look_at_stop(const Cancellation* cancellation) {
  if (cancellation == nullptr || !cancellation->cancelled()) return {};
  return Error{ErrorCode::kGuestStopped, "stopped by the host", 0};
}

/// Calls `work` with one piece of `whole` after another, and looks at the stop before each. `work`
/// answers nothing, or a Result<bool> whose false ends the work early. `size_of` says how long the
/// next piece is.
template <class Whole, class Work, class SizeOf>
Result<void> in_pieces(const Cancellation* cancellation, Whole whole, Work work, SizeOf size_of) {
  while (!whole.empty()) {
    SW_CHECK_OK(look_at_stop(cancellation));
    const std::size_t size = size_of(whole);
    const Whole piece(whole.data(), size);
    if constexpr (std::is_void_v<std::invoke_result_t<Work&, Whole>>) {
      work(piece);
    } else {
      SW_TRY(const bool more, work(piece));
      if (!more) break;
    }
    whole = Whole(whole.data() + size, whole.size() - size);
  }
  return {};
}
template <class T, class Work>
Result<void> in_pieces(const Cancellation* cancellation, std::span<T> whole, Work work) {
  return in_pieces(cancellation, whole, std::move(work),
                   [](std::span<T> rest) { return std::min(rest.size(), kPieceBytes); });
}
/// No piece ends within a UTF-8 sequence, valid or not.
template <class Work>
Result<void> in_pieces(const Cancellation* cancellation, std::string_view whole, Work work) {
  return in_pieces(cancellation, whole, std::move(work),
                   [](std::string_view rest) { return whole_utf8_sequences(rest, kPieceBytes); });
}

}  // namespace sw
