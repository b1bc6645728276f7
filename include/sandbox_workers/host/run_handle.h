// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <future>
#include <stop_token>
#include <utility>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/run.h"

namespace sw {

namespace host {
class Core;
}

/// Called with the result of a run, before RunHandle::wait returns. It must not wait for another
/// run.
using RunDone = std::function<void(const Result<Outcome>&)>;

/// A run that was started. Destroying the handle does not affect the run.
/// Threads: any.
class RunHandle {
 public:
  /// Ends the run, as Run::cancel does: politely first, which keeps a context's state.
  void interrupt() { stop_.request_stop(); }
  /// Waits until the run has ended and `done` has returned. Not from the thread of a run.
  Result<Outcome> wait() const { return outcome_.get(); }

 private:
  friend class host::Core;
  RunHandle(std::stop_source stop, std::shared_future<Result<Outcome>> outcome)
      : stop_(std::move(stop)), outcome_(std::move(outcome)) {}
  std::stop_source stop_;
  std::shared_future<Result<Outcome>> outcome_;
};

}  // namespace sw
