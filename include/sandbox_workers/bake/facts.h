// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "sandbox_workers/base/result.h"

namespace sw::bake {

/// Numbers found out at bake that a guest started from the image needs again (addresses, offsets).
using BakeFacts = std::map<std::string, std::uint64_t, std::less<>>;

/// Errors: kCorrupt when there is no such fact, or it is above `max`.
Result<std::uint64_t> find_fact(const BakeFacts& facts, std::string_view name, std::uint64_t max);

/// The fact as a T.
template <class T>
Result<T> fact(const BakeFacts& facts, std::string_view name) {
  SW_TRY(const std::uint64_t number, find_fact(facts, name, std::numeric_limits<T>::max()));
  return static_cast<T>(number);
}

}  // namespace sw::bake
