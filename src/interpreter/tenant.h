// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "sandbox_workers/engine/engine.h"
#include "sandbox_workers/interpreter/residency_pool.h"
#include "snapshot/snapshot_store.h"

namespace sw::interpreter {

/// An instance, and what is known to be stored of its memory.
struct Resident {
  std::string context;
  snapshot::Live live;
  std::unique_ptr<engine::SessionInstance> session;
  std::uint64_t bytes = 0;  ///< about how much memory it takes
};

/// One Interpreter's instances in a pool. They share a tree of files with the one that runs, so
/// nobody touches them while the Interpreter works: who evicts takes only from tenants that are at
/// rest.
class Tenant {
 public:
  explicit Tenant(std::shared_ptr<ResidencyPool> pool);
  ~Tenant();
  Tenant(const Tenant&) = delete;
  Tenant& operator=(const Tenant&) = delete;

  /// To be held during all of what follows, and for as long as the tree of files is used.
  [[nodiscard]] std::unique_lock<std::mutex> work() { return std::unique_lock(working_); }

  /// Out of the pool, for a run; null if there is none.
  std::unique_ptr<Resident> take(std::string_view context);
  /// Back into it, as the one used last; then those used longest ago go, this one too if it alone
  /// is too large.
  void put(std::unique_ptr<Resident> resident);
  void drop(std::string_view context);
  void clear();
  bool has(std::string_view context) const;

 private:
  friend class ResidencyPool::State;
  const std::shared_ptr<ResidencyPool> pool_;  // shared by all tenants
  std::mutex working_;
};

}  // namespace sw::interpreter
