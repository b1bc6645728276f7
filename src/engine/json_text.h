// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// JSON that a guest wrote, before it becomes part of an answer of ours.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace sw::engine {

/// A larger value is shown as text: reading it takes time and memory of the host, which no limit of
/// the run ends.
inline constexpr std::size_t kJsonBytesMax = std::size_t{16} << 20;
/// So is one that is nested deeper, so that no reader's stack is at risk. Real data is not.
inline constexpr std::size_t kJsonDepthMax = 512;

/// The same JSON value printed again: without white space, strings escaped only where they must be,
/// numbers digit for digit. nullopt: this is not one JSON value in UTF-8, an object has a key twice
/// (readers disagree about which one counts), or a limit above is passed.
std::optional<std::string> normal_json(std::string_view text);

/// JSON in which each escape that is half of a surrogate pair, which UTF-8 cannot hold, is replaced
/// by that of U+FFFD.
std::string with_whole_surrogates(std::string json);

/// JSON in which the characters that some readers take for the end of a line (U+0085, U+2028,
/// U+2029) are escaped.
std::string with_escaped_line_ends(std::string json);

}  // namespace sw::engine
