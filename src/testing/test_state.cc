// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/testing/test_state.h"

#include <utility>

#include "interpreter/worker.h"
#include "storage/memory/memory_storage.h"

namespace sw::testing {

struct TestState::Disk {
  storage::MemoryDisk disk;
};

namespace {

/// A Worker and what it stands on, which goes after it.
struct Served {
  std::shared_ptr<TestState> state;
  std::shared_ptr<interpreter::RuntimeWorker> worker;
};

}  // namespace

TestState::TestState() : disk_(std::make_unique<Disk>()) {}
TestState::~TestState() = default;

std::shared_ptr<TestState> create_test_state() { return std::make_shared<TestState>(); }

Result<std::shared_ptr<interpreter::RuntimeWorker>> serve(
    std::shared_ptr<engine::Engine> engine, std::shared_ptr<TestState> state,
    interpreter::RuntimeWorkerOptions options) {
  auto storage = storage::open_memory_storage(state->disk_->disk);
  const auto served = std::make_shared<Served>();
  served->worker =
      interpreter::make_runtime_worker(std::move(engine), std::move(options), std::move(storage));
  served->state = std::move(state);
  interpreter::RuntimeWorker* const worker = served->worker.get();
  return std::shared_ptr<interpreter::RuntimeWorker>(served, worker);
}

}  // namespace sw::testing
