// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "sandbox_workers/engine/engine.h"

namespace sw {

/// A small cell through a host: queue, guest thread, sandbox, Interpreter, both commits.
void sandbox_step(benchmark::State& state, const std::shared_ptr<engine::Engine>& engine,
                  const std::string& code);

/// The same beside two processes that keep the processors busy, set against alone.
void step_under_load(benchmark::State& state, const std::shared_ptr<engine::Engine>& engine,
                     const std::string& code);

}  // namespace sw
