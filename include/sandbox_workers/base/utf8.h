// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace sw {

/// Offset of the first byte that is not part of valid UTF-8 (surrogates and overlong forms are
/// not).
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

/// How many bytes of `text`, `bytes_max` (at least 4) or a few less, hold whole sequences, valid or
/// not: what is made of them and of the rest together is what is made of the text.
std::size_t whole_utf8_sequences(std::string_view text, std::size_t bytes_max);

/// `bytes` with every invalid sequence replaced by U+FFFD, as the Encoding Standard's decoder does.
std::string to_valid_utf8(std::string_view bytes);

}  // namespace sw
