// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the driver in the guest answers. Its memory is the guest's, so an answer may be anything:
// what is none of the forms below is refused with kCorrupt.

#include <cstdint>
#include <string>
#include <string_view>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/run.h"

namespace sw::engine::javascript {

/// What becomes of TypeScript.
struct Stripped {
  enum class Kind : std::uint8_t { kJavaScript, kUnsupported, kInvalid };
  Kind kind = Kind::kInvalid;
  std::string text;  ///< the JavaScript, or why there is none
  std::int64_t line = 0;
};

/// '=' and the JavaScript; or '!' (TypeScript that cannot be run here), '?' or '&' (no TypeScript),
/// a line, ':' and why.
Result<Stripped> parse_stripped(std::string_view answer);

/// How a value is shown.
struct Shown {
  enum class Kind : std::uint8_t { kText, kJson, kTooLong };
  Kind kind = Kind::kText;
  std::string text;
};

/// 't' and text, 'j' and JSON, or 'l' alone: longer than allowed. So is what has `bytes_max` bytes:
/// the rest was not read.
Result<Shown> parse_shown(std::string answer, std::size_t bytes_max);

/// The error of a reply, as JSON.
Result<GuestError> parse_error(std::string json);

}  // namespace sw::engine::javascript
