// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Interpreters kept in memory between runs, for all sandboxes of a process. What they hold is
// stored after each run, so one that has to go costs time, not data. Those used longest ago go
// first.

#include <cstddef>
#include <cstdint>
#include <memory>

namespace sw::interpreter {

struct ResidencyLimits {  // how much may stay in memory
  /// Memory of instances at rest, beyond what they share with their image.
  std::uint64_t bytes_max = std::uint64_t{1} << 30;
  /// Each takes an address range of 4 GiB and a few mappings, of which a process has 65530.
  std::size_t instances_max = 256;
};

struct ResidencyStats {       // how much is there now
  std::size_t instances = 0;  ///< at rest
  std::uint64_t bytes = 0;
  std::uint64_t evicted = 0;  ///< since the pool was made
};

/// Threads: any.
class ResidencyPool {
 public:
  explicit ResidencyPool(const ResidencyLimits& limits = {});
  ~ResidencyPool();
  ResidencyPool(const ResidencyPool&) = delete;
  ResidencyPool& operator=(const ResidencyPool&) = delete;

  ResidencyStats stats() const;

  class State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace sw::interpreter
