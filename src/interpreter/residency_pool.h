// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Instances at rest: kept between the runs of their contexts, for all Interpreters of a process
// together, and dropped when there are too many. docs/adr/0012.

#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_safety.h"
#include "sandbox_workers/base/byte_range.h"
#include "sandbox_workers/engine/engine.h"
#include "sandbox_workers/interpreter/runtime_worker.h"
#include "snapshot/snapshot_store.h"

namespace sw::interpreter {

/// An instance, and what is known to be stored of its memory.
struct Resident {
  std::optional<snapshot::LiveMemory> live = {};
  std::unique_ptr<engine::SessionInstance> session = {};
  /// What the instance said has changed, and no save has stored.
  std::vector<ByteRange> unsaved = {};
  std::uint64_t bytes = 0;  ///< about how much memory it takes
};

struct ResidencyStats {       // how much is there now
  std::size_t instances = 0;  ///< at rest
  std::uint64_t bytes = 0;
  std::uint64_t evicted = 0;  ///< since the pool was made
};

/// An owner is whoever the contexts belong to: their names are unique with each owner only.
/// Threads: any. Instances end outside of the pool's mutex, on the thread that calls.
class ResidencyPool {
 public:
  using Owner = const void*;

  explicit ResidencyPool(const ResidencyLimits& limits = {}) : limits_(limits) {}
  ResidencyPool(const ResidencyPool&) = delete;
  ResidencyPool& operator=(const ResidencyPool&) = delete;

  /// Out of the pool, for a run; null if there is none.
  std::unique_ptr<Resident> take(Owner owner, std::string_view context);
  /// Into it, as the one used last; then those used longest ago go, this one too if it alone is too
  /// large.
  void put(Owner owner, std::string context, std::unique_ptr<Resident> resident);
  bool has(Owner owner, std::string_view context) const;
  /// Drops all of an owner's.
  void clear(Owner owner);

  ResidencyStats stats() const;

 private:
  struct Entry {
    Owner owner;
    std::string context;
    std::unique_ptr<Resident> resident;
  };
  using Entries = std::list<Entry>;

  Entries::const_iterator find(Owner owner, std::string_view context) const SW_REQUIRES(mutex_);

  const ResidencyLimits limits_;
  mutable Mutex mutex_;
  Entries entries_ SW_GUARDED_BY(mutex_);  // used longest ago first
  std::uint64_t bytes_ SW_GUARDED_BY(mutex_) = 0;
  std::uint64_t evicted_ SW_GUARDED_BY(mutex_) = 0;
};

}  // namespace sw::interpreter
