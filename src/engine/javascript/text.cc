// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/javascript/text.h"

#include <cstring>

namespace sw::engine::javascript {

void replace_lone_surrogates(std::span<char> text) {
  for (std::size_t at = 0; at + 2 < text.size();) {
    const void* found = std::memchr(text.data() + at, 0xED, text.size() - at - 2);
    if (found == nullptr) break;
    at = static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
    if (static_cast<unsigned char>(text[at + 1]) >= 0xA0) {
      std::memcpy(text.data() + at, "\xEF\xBF\xBD", 3);
      at += 3;
    } else {
      ++at;
    }
  }
}

std::string without_lone_surrogates(std::string text) {
  replace_lone_surrogates(text);
  return text;
}

void append_escaped(std::string& to, std::string_view text) {
  for (const char c : text) {
    if (c == '\\' || c == '\'') to += '\\';
    to += c;
  }
}

}  // namespace sw::engine::javascript
