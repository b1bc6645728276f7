// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "sandbox_workers/engine/engine.h"

namespace sw {

/// What the files of a sandbox cost those who leave them alone, and those who change one.
void register_files_benchmarks(const std::function<std::shared_ptr<engine::Engine>()>& load);

}  // namespace sw
