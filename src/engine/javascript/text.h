// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace sw::engine::javascript {

/// A JavaScript string may hold half a surrogate pair, which the interpreter writes as three bytes that are not
/// UTF-8. Each becomes U+FFFD; the length stays.
std::string without_lone_surrogates(std::string text);

/// 'text', as a REPL shows a string: \ and ' are escaped, nothing else.
std::string quoted_text(std::string_view text);

}  // namespace sw::engine::javascript
