// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What this room's tests need beside an interpreter: engines, a workspace, a way to run a cell.

#include <chrono>
#include <memory>
#include <string>

#include "engine/embedded_engine.h"
#include "interpreter/interpreter.h"
#include "sandbox_workers/engine/all_languages.h"
#include "sandbox_workers/engine/machine.h"
#include "sandbox_workers/wasi/clocks.h"
#include "sandbox_workers/wasm/guest_thread.h"
#include "storage/sqlite/sqlite_storage.h"

namespace sw::interpreter {

struct TestMachine {
  std::unique_ptr<engine::Machine> machine = engine::Machine::create().value();
  const wasi::Clocks& clocks = machine->clocks();
  std::shared_ptr<Workspace> workspace = std::make_shared<Workspace>(wasi::TreeLimits{}, clocks.realtime_ns());

  std::shared_ptr<engine::Engine> load(const std::string& language) const {
    return machine->load(engine::find_language(language).value()).value();
  }

  Result<ExecuteResult> execute(Interpreter& interpreter, const std::string& id, const std::string& code,
                                std::chrono::nanoseconds wall_max = std::chrono::minutes(1)) const {
    engine::RunRequest request;
    request.code = code;
    request.limits.wall_max = wall_max;
    wasi::BufferSink sink;
    return interpreter.execute(id, request, workspace, sink);
  }
};

inline const storage::ObjectName kTestObject{.class_name = "interpreter", .id = "test"};

}  // namespace sw::interpreter
