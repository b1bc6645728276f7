// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sw::engine::javascript {

/// A JavaScript string may hold half a surrogate pair, which the interpreter writes as three bytes
/// that are not UTF-8. Each becomes U+FFFD; the length stays.
void replace_lone_surrogates(std::span<char> text);
std::string without_lone_surrogates(std::string text);

/// Adds `text` with \ and ' escaped and nothing else, as a REPL shows what a string holds.
void append_escaped(std::string& to, std::string_view text);

}  // namespace sw::engine::javascript
