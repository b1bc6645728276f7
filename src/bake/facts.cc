// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/bake/facts.h"

#include <fmt/format.h>

namespace sw::bake {

Result<std::uint64_t> find_fact(const BakeFacts& facts, std::string_view name, std::uint64_t max) {
  const auto found = facts.find(name);
  if (found == facts.end())
    return Error{ErrorCode::kCorrupt, fmt::format("the image lacks the fact {}", name), 0};
  if (found->second > max) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("fact {} of the image is too large: {}", name, found->second), 0};
  }
  return found->second;
}

}  // namespace sw::bake
