// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/base/unique_fd.h"

namespace sw {

/// Why a wait ended.
enum class WaitEnd : std::uint8_t { kDeadline, kReady, kWoken, kCancelled };

/// What a wait wants to do with a descriptor.
enum class WaitTo : std::uint8_t { kRead, kWrite };

/// Told when a run begins to wait and before it goes on, on the run's thread.
class WaitObserver {
 public:
  virtual ~WaitObserver() = default;
  /// The run computes nothing until `on_resume`, which may block until it may go on.
  virtual void on_wait() {}
  virtual void on_resume() {}
};

/// Lets other threads end the waits of a run. One per executor, reused by `reset`: it owns a
/// descriptor.
/// Threads: `cancel` and `wake` from any thread and from signal handlers; the rest from the run's
/// thread.
class Cancellation {
 public:
  static Result<std::unique_ptr<Cancellation>> create();
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  /// Ends the wait in progress and every later one, until `reset`.
  void cancel() noexcept;
  /// Ends the wait in progress, or the next one, once.
  void wake() noexcept;
  bool cancelled() const noexcept { return cancelled_.load(std::memory_order_acquire); }

  /// Sleeps until CLOCK_MONOTONIC reaches `deadline_ns` (none: for ever), `fd` (if not -1) can be
  /// read or written, or another thread ends it. A wait that is over already still notices
  /// cancellation.
  WaitEnd wait_until(std::optional<std::uint64_t> deadline_ns, int fd = -1,
                     WaitTo purpose = WaitTo::kRead);

  /// `observer` outlives the waits; null: nobody. Called only for waits that do not end at once.
  void observe(WaitObserver* observer) noexcept { observer_ = observer; }

  void reset() noexcept;

 private:
  explicit Cancellation(UniqueFd event) : event_(std::move(event)) {}
  int wait_once(const std::optional<std::uint64_t>& deadline_ns, pollfd* watched, unsigned count);
  void signal() noexcept;
  void drain() noexcept;

  UniqueFd event_;  // readable while something is to be noticed
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> woken_{false};
  WaitObserver* observer_ = nullptr;
};

}  // namespace sw
