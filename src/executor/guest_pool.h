// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The threads that guests run on. A guest keeps its thread from start to end, since its stack is
// there; but while it waits (sleeps, reads its input, writes to a slow reader) it gives up its slot,
// and another guest computes instead. So there are as many slots as processors, and as many threads as
// guests in progress, up to a bound. Threads are kept: nothing is created per run.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "sandbox_workers/base/cancellation.h"
#include "sandbox_workers/base/result.h"

namespace sw::executor {

struct GuestPoolOptions {
  /// Guests that compute at once. 0: as many as there are processors.
  std::size_t slots = 0;
  /// Guests in progress, those that wait included. Each has a thread.
  std::size_t guests_max = 256;
  /// What the guests in progress may use together, by their limits; one may always run. 0: no limit.
  std::uint64_t memory_bytes_max = 0;
  /// Jobs that have not begun.
  std::size_t queue_max = 10'000;
  /// Of each thread: address space, of which only what is used takes memory. The default is what
  /// wasm::EngineOptions and the host's own functions need together.
  std::size_t stack_bytes = std::size_t{144} << 20;
};

struct GuestPoolStats {
  std::size_t queued = 0;
  std::size_t in_progress = 0;
  std::size_t computing = 0;
  std::size_t threads = 0;
};

/// Threads: any.
class GuestPool {
 public:
  /// What a job has while it runs: the right to compute. Tell it when the guest waits.
  class Slot : public WaitObserver {
   public:
    /// The job computes no more: another does instead, while it waits for the end of something.
    virtual void release() = 0;
  };

  /// Called once: on a guest thread with a slot, or with an Error on the thread that submitted,
  /// cancelled or shut down. It must not throw.
  using Job = std::function<void(const Result<Slot*>&)>;

  struct Request {
    /// Whose job it is. Those who have jobs waiting take turns.
    std::string owner = {};
    /// Jobs with the same key run one at a time, in the order they were submitted. Empty: no key.
    std::string turn = {};
    std::uint64_t memory_bytes = 0;
    /// Takes the job out of the queue; a job that has begun has to look itself.
    std::stop_token cancel = {};
  };

  explicit GuestPool(const GuestPoolOptions& options);
  /// Shuts down.
  ~GuestPool();
  GuestPool(const GuestPool&) = delete;
  GuestPool& operator=(const GuestPool&) = delete;

  /// Queues the job, or begins it. Errors, as the job's: kLimitExceeded for a full queue; kUnavailable
  /// when cancelled in the queue or shutting down, or no thread can be started.
  void submit(Request request, Job job);

  /// Runs `body` on a guest thread and waits for it. Not from a job.
  Result<void> run(Request request, const std::function<void(Slot&)>& body);

  GuestPoolStats stats() const;

  /// Refuses what has not begun and waits for what has. Not from a job.
  void shut_down();

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace sw::executor
