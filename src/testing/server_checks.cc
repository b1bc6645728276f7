// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "testing/checks.h"

namespace sw::testing {

Result<void> check_server(Checks& /*checks*/, const std::shared_ptr<engine::Engine>& /*engine*/,
                          const ConformancePrograms& /*programs*/, const ConformanceOptions& /*options*/) {
  return {};
}

}  // namespace sw::testing
