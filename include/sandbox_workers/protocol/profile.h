// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a caller may choose about the rules of runs in contexts.

#include <optional>
#include <string_view>

#include "sandbox_workers/engine/run.h"

namespace sw::protocol {

/// Rules that are chosen together, by a name.
struct Profile {
  std::string_view name;
  AfterError after_error = AfterError::kKeep;  ///< of runs that do not say
  bool serial = false;  ///< all runs of a sandbox take turns, not only those of one context
};
inline constexpr Profile kStandardProfile{.name = "standard", .after_error = AfterError::kKeep};
/// Those of the project that this one grew from: docs/differences.md.
inline constexpr Profile kCompatProfile{
    .name = "compat", .after_error = AfterError::kFilesBack, .serial = true};

/// The profile of that name, if there is one.
std::optional<Profile> find_profile(std::string_view name);

/// What callers write: "keep" or "rollback". Anything else is nothing.
std::optional<AfterError> parse_on_error(std::string_view text);

/// The same for "commit" or "relaxed".
std::optional<Durability> parse_durability(std::string_view text);
std::string_view durability_name(Durability durability);

}  // namespace sw::protocol
