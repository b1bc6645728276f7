// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Storage that lasts as long as its MemoryDisk: for hosts without a data folder, and for tests.

#include <memory>
#include <optional>

#include "storage/layered_storage.h"

namespace sw::storage {

/// What a process that "restarts" finds again: give the same disk to the next storage.
class MemoryDisk {
 public:
  explicit MemoryDisk(Bodies bodies = Bodies::kOnce);
  ~MemoryDisk();
  MemoryDisk(const MemoryDisk&) = delete;
  MemoryDisk& operator=(const MemoryDisk&) = delete;

  /// From now on commits fail with this error, as on a full disk; nullopt: they work again.
  void fail_commits(std::optional<Error> error);

  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

/// `disk` has to outlive the storage.
std::unique_ptr<Storage> open_memory_storage(MemoryDisk& disk);

}  // namespace sw::storage
