// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/javascript/answers.h"

#include <charconv>
#include <utility>

#include "engine/javascript/text.h"
#include "sandbox_workers/engine/language.h"

namespace sw::engine::javascript {

namespace {

Error nonsense() { return Error{ErrorCode::kCorrupt, "invalid answer from its driver", 0}; }

}  // namespace

Result<Stripped> parse_stripped(std::string_view answer) {
  Stripped stripped;
  if (answer.starts_with('=')) {
    stripped.kind = Stripped::Kind::kJavaScript;
    stripped.text = answer.substr(1);
    return stripped;
  }
  const std::size_t colon = answer.find(':');
  if (colon == std::string_view::npos ||
      std::string_view("!?&").find(answer.front()) == std::string_view::npos) {
    return nonsense();
  }
  stripped.kind = answer.front() == '!' ? Stripped::Kind::kUnsupported : Stripped::Kind::kInvalid;
  const std::string_view line = answer.substr(1, colon - 1);
  const auto parsed = std::from_chars(line.data(), line.data() + line.size(), stripped.line);
  if (parsed.ec != std::errc() || parsed.ptr != line.data() + line.size() || stripped.line < 0)
    return nonsense();
  stripped.text = answer.substr(colon + 1);
  return stripped;
}

Result<Shown> parse_shown(std::string answer, std::size_t bytes_max) {
  if (answer.empty()) return nonsense();
  const char form = answer.front();
  if (form != 't' && form != 'j' && form != 'l') return nonsense();
  if (form == 'l' || answer.size() >= bytes_max)
    return Shown{.kind = Shown::Kind::kTooLong, .text = {}};
  answer.erase(0, 1);
  return Shown{.kind = form == 'j' ? Shown::Kind::kJson : Shown::Kind::kText,
               .text = std::move(answer)};
}

Result<GuestError> parse_error(std::string json) {
  // A line feed would end the reply's head.
  if (json.find('\n') != std::string::npos) return nonsense();
  SW_TRY(Reply reply, parse_reply("{\"error\":" + std::move(json) + "}"));
  if (!reply.error) return nonsense();
  return *std::move(reply.error);
}

}  // namespace sw::engine::javascript
