// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a durable object keeps, in memory: for tests. Two Workers made over one state, one after the
// other, are a Worker that was evicted and came back.

#include <memory>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/engine.h"
#include "sandbox_workers/interpreter/runtime_worker.h"

namespace sw::testing {

/// Threads: any.
class TestState {
 public:
  TestState();
  ~TestState();
  TestState(const TestState&) = delete;
  TestState& operator=(const TestState&) = delete;

 private:
  friend Result<std::shared_ptr<interpreter::RuntimeWorker>> serve(
      std::shared_ptr<engine::Engine>, std::shared_ptr<TestState>,
      interpreter::RuntimeWorkerOptions);
  struct Disk;

  const std::unique_ptr<Disk> disk_;
};

/// A state with nothing in it.
std::shared_ptr<TestState> create_test_state();

/// A runtime Worker whose contexts are kept in `state`, which it keeps alive. Once it is gone, the
/// next one over the state finds what it left; of two at a time, the later owns the state and the
/// earlier fails. `options.storage_folder` is not looked at.
Result<std::shared_ptr<interpreter::RuntimeWorker>> serve(
    std::shared_ptr<engine::Engine> engine, std::shared_ptr<TestState> state,
    interpreter::RuntimeWorkerOptions options = {});

}  // namespace sw::testing
