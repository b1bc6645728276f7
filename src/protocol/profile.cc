// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/protocol/profile.h"

namespace sw::protocol {

std::optional<Profile> find_profile(std::string_view name) {
  for (const Profile& profile : {kStandardProfile, kCompatProfile}) {
    if (profile.name == name) return profile;
  }
  return std::nullopt;
}

std::optional<AfterError> parse_on_error(std::string_view text) {
  if (text == "keep") return AfterError::kKeep;
  if (text == "rollback") return AfterError::kRollback;
  return std::nullopt;
}

std::optional<Durability> parse_durability(std::string_view text) {
  for (const Durability durability : {Durability::kCommit, Durability::kRelaxed}) {
    if (durability_name(durability) == text) return durability;
  }
  return std::nullopt;
}

std::string_view durability_name(Durability durability) {
  return durability == Durability::kCommit ? "commit" : "relaxed";
}

}  // namespace sw::protocol
