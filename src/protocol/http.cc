// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/protocol/http.h"

#include <boost/algorithm/string/predicate.hpp>

namespace sw::protocol {

std::optional<std::string_view> find_header(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (boost::algorithm::iequals(key, name)) return value;
  }
  return std::nullopt;
}

}  // namespace sw::protocol
