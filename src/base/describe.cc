// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "base/describe.h"

#include <boost/system/system_error.hpp>

namespace sw {

std::string describe(const std::exception& problem) {
  const auto* const coded = dynamic_cast<const boost::system::system_error*>(&problem);
  return coded ? coded->code().message() : problem.what();
}

}  // namespace sw
