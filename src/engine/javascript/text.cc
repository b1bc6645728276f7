// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/javascript/text.h"

#include <cstring>

namespace sw::engine::javascript {

std::string without_lone_surrogates(std::string text) {
  for (std::size_t at = 0; at + 2 < text.size();) {
    const void* found = std::memchr(text.data() + at, 0xED, text.size() - at - 2);
    if (found == nullptr) break;
    at = static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
    if (static_cast<unsigned char>(text[at + 1]) >= 0xA0) {
      text.replace(at, 3, "\xEF\xBF\xBD");
      at += 3;
    } else {
      ++at;
    }
  }
  return text;
}

std::string quoted_text(std::string_view text) {
  std::string result = "'";
  result.reserve(text.size() + 2);
  for (const char c : text) {
    if (c == '\\' || c == '\'') result += '\\';
    result += c;
  }
  result += '\'';
  return result;
}

}  // namespace sw::engine::javascript
