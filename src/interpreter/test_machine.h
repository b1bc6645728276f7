// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What this room's tests need beside an interpreter: engines, a workspace, a way to run a cell.

#include <chrono>
#include <memory>
#include <string>

#include "engine/all_languages.h"
#include "engine/engine.h"
#include "interpreter/interpreter.h"
#include "storage/sqlite/sqlite_storage.h"
#include "wasi/clocks.h"
#include "wasm/guest_thread.h"

namespace sw::interpreter {

struct TestMachine {
  std::unique_ptr<wasm::Engine> wasm = wasm::Engine::create({}).value();
  engine::ArtifactCache cache = engine::ArtifactCache::open(engine::default_cache_folder()).value();
  engine::Watchdog watchdog;
  wasi::SystemClocks clocks;
  std::shared_ptr<wasi::Tree> workspace =
      std::make_shared<wasi::Tree>(wasi::TreeLimits{}, wasi::SystemClocks().realtime_ns());

  std::shared_ptr<engine::Engine> load(const std::string& language) {
    return engine::Engine::load({*wasm, cache, watchdog, clocks}, engine::find_language(language).value(),
                                [](std::string_view, std::chrono::seconds) {})
        .value();
  }

  Result<ExecuteResult> execute(Interpreter& interpreter, const std::string& id, const std::string& code,
                                std::chrono::nanoseconds wall_max = std::chrono::minutes(1)) const {
    engine::RunRequest request;
    request.code = code;
    request.workspace = workspace;
    request.limits.wall_max = wall_max;
    wasi::BufferSink sink;
    return interpreter.execute(id, request, sink);
  }
};

inline const storage::ObjectName kTestObject{.class_name = "interpreter", .id = "test"};

}  // namespace sw::interpreter
