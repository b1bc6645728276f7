// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a caller may choose about the rules of runs in contexts.

#include <cstdint>
#include <optional>
#include <string_view>

namespace sw::runtime {

/// What becomes of memory and files when a run ends with an error, that is in any way but completed
/// or exited. A run whose instance is lost (it trapped, or was stopped by force) loses both in any
/// case.
enum class AfterError : std::uint8_t {
  kKeep,       ///< both stay as the run left them
  kRollback,   ///< both go back to before the run, the offsets of open files too
  kFilesBack,  ///< memory stays, files go back
};

/// Rules that are chosen together, by a name.
struct Profile {
  std::string_view name;
  AfterError after_error = AfterError::kKeep;  ///< of runs that do not say
};
inline constexpr Profile kStandardProfile{.name = "standard", .after_error = AfterError::kKeep};
/// Those of the project that this one grew from: docs/differences.md.
inline constexpr Profile kCompatProfile{.name = "compat", .after_error = AfterError::kFilesBack};

/// The profile of that name, if there is one.
std::optional<Profile> find_profile(std::string_view name);

/// What callers write: "keep" or "rollback". Anything else is nothing.
std::optional<AfterError> parse_on_error(std::string_view text);

}  // namespace sw::runtime
