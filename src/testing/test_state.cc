// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/testing/test_state.h"

#include <utility>

#include "storage/memory/memory_storage.h"

namespace sw::testing {

namespace {

/// A Worker and what it stands on, which goes after it.
struct Served {
  std::shared_ptr<TestState> state;
  std::unique_ptr<storage::Storage> storage;
  std::shared_ptr<interpreter::InterpreterWorker> worker;
};

}  // namespace

TestState::TestState() : disk_(std::make_unique<storage::MemoryDisk>()) {}
TestState::~TestState() = default;

std::shared_ptr<TestState> create_test_state() { return std::make_shared<TestState>(); }

Result<std::shared_ptr<interpreter::InterpreterWorker>> serve(
    std::shared_ptr<engine::Engine> engine, std::shared_ptr<TestState> state,
    interpreter::RuntimeOptions options) {
  auto served = std::make_shared<Served>();
  served->state = std::move(state);
  served->storage = storage::open_memory_storage(served->state->disk());
  options.storage_folder.clear();
  options.storage = served->storage.get();
  SW_TRY(served->worker, interpreter::define_interpreter_runtime(std::move(engine), options));
  interpreter::InterpreterWorker* const worker = served->worker.get();
  return std::shared_ptr<interpreter::InterpreterWorker>(std::move(served), worker);
}

}  // namespace sw::testing
