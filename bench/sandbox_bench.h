// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "sandbox_workers/engine/engine.h"

namespace sw {

/// What the disk takes for 8 KB within a file: the least that a durable step can cost.
void sync_8k(benchmark::State& state);

/// A small cell through a host: queue, guest thread, Interpreter, sandbox, commit.
void sandbox_step(benchmark::State& state, const std::shared_ptr<engine::Engine>& engine,
                  const std::string& code, Durability durability);

/// A relaxed one after 1,000 steps, set against those from the tenth on.
void sandbox_step_late(benchmark::State& state, const std::shared_ptr<engine::Engine>& engine,
                       const std::string& code);

/// The same in 64 contexts of one sandbox at once, on two threads, set against one context alone.
void steps_at_once(benchmark::State& state, const std::shared_ptr<engine::Engine>& engine,
                   const std::string& code);

/// Copies a sandbox that has 100 MB in files and four contexts.
void sandbox_fork(benchmark::State& state, const std::shared_ptr<engine::Engine>& engine,
                  const std::string& code);

/// The same beside two processes that keep the processors busy, set against alone.
void step_under_load(benchmark::State& state, const std::shared_ptr<engine::Engine>& engine,
                     const std::string& code);

/// A file read of an idle sandbox, of 200 in memory, while 64 of the others compute on two threads.
void read_beside_busy_sandboxes(benchmark::State& state,
                                const std::shared_ptr<engine::Engine>& engine,
                                const std::string& endless);

/// A fresh run while 1,000 guests sleep, or wait in the queue to sleep.
void run_beside_sleepers(benchmark::State& state, const std::shared_ptr<engine::Engine>& engine,
                         const std::string& sleep);

}  // namespace sw
