// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "sandbox_workers/engine/machine.h"

namespace sw::cli {

/// Loads a language, baking it first if need be, with progress on stderr.
Result<std::shared_ptr<engine::Engine>> load_engine(engine::Machine& machine,
                                                    std::unique_ptr<engine::Language> language);

}  // namespace sw::cli
