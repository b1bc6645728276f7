// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "sandbox_workers/base/result.h"

namespace sw::object {

/// No reply leaves an object before the writes that it depends on are durable. Work goes on behind
/// the gate.
/// Threads: one at a time (the object's strand).
class OutputGate {
 public:
  /// A commit has begun. Each is followed by one `release`, in the same order.
  void hold() { ++begun_; }
  void release(Result<void> outcome);

  /// Calls `leave` as soon as every commit begun until now has ended, at once if all have. It gets
  /// the gate's error if one of them failed: a lost write must not be answered as if it had
  /// happened.
  void when_open(std::function<void(Result<void>)> leave);

  /// The first failure. Never cleared: whatever is in memory now may rest on what was lost.
  const std::optional<Error>& broken() const { return broken_; }
  bool settled() const { return begun_ == ended_; }

 private:
  struct Waiting {
    std::uint64_t until;  // this many commits
    std::function<void(Result<void>)> leave;
  };

  Result<void> state() const { return broken_ ? Result<void>(*broken_) : Result<void>(); }

  std::uint64_t begun_ = 0;
  std::uint64_t ended_ = 0;
  std::optional<Error> broken_;
  std::deque<Waiting> waiting_;  // by `until`
};

}  // namespace sw::object
