// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "sandbox_workers/engine/engine.h"

namespace sw {

/// step, restore and fork of code contexts on disk, for one language.
void register_context_benchmarks(const std::shared_ptr<engine::Engine>& engine);

}  // namespace sw
