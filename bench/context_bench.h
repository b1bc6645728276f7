// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "sandbox_workers/engine/engine.h"

namespace sw {

/// A language's engine, which is loaded when it is first measured.
using Load = std::function<std::shared_ptr<engine::Engine>()>;

/// step, restore and fork of code contexts on disk, for one language.
void register_context_benchmarks(const std::string& language, const Load& load);

}  // namespace sw
