// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a durable object keeps, in memory: for tests. Two servers made over one state, one after the other, are a
// server that was evicted and came back.

#include <memory>

namespace sw::storage {
class MemoryDisk;
}

namespace sw::testing {

/// Threads: any. Outlives the servers made over it.
class TestState {
 public:
  TestState();
  ~TestState();
  TestState(const TestState&) = delete;
  TestState& operator=(const TestState&) = delete;

  storage::MemoryDisk& disk() { return *disk_; }

 private:
  std::unique_ptr<storage::MemoryDisk> disk_;
};

/// A state with nothing in it.
std::shared_ptr<TestState> create_test_state();

}  // namespace sw::testing
