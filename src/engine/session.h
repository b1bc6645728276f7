// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One interpreter that runs cells one after another, its state kept between them.

#include <memory>
#include <string>

#include "base/cancellation.h"
#include "base/result.h"
#include "engine/language.h"
#include "engine/outcome.h"
#include "engine/watchdog.h"
#include "wasi/streams.h"
#include "wasm/instance.h"

namespace sw::engine {

/// Threads: one at a time, on a thread with room for a guest's stack (wasm::run_on_guest_thread).
class Session final : private Stoppable {
 public:
  /// `guest` is bound to `instance`, which was just made from the image. `watchdog` outlives the session.
  static Result<std::unique_ptr<Session>> create(std::unique_ptr<Guest> guest,
                                                 std::unique_ptr<wasm::Instance> instance, Watchdog& watchdog);
  ~Session() override;

  /// Runs one cell; output goes to `output` as it is printed. Errors raised by the code and limits are part of the
  /// outcome; an Error means that the host failed.
  Result<Outcome> execute(const RunRequest& request, wasi::OutputSink& output);

  /// Runs the interpreter's exit handlers within the limits of the last cell; an error they end with is dropped.
  void finish();

  /// False once the interpreter trapped, exited or was stopped by force: nothing can be run in it any more.
  bool usable() const { return !instance_->poisoned(); }

  /// Makes the interpreter as new, with nothing left of what was run; see wasm::Instance::reset. If the verdict is
  /// not kKept the session must be dropped.
  wasm::ResetStats reset();

  Guest& guest() { return *guest_; }

 private:
  Session(std::unique_ptr<Guest> guest, std::unique_ptr<wasm::Instance> instance,
          std::unique_ptr<Cancellation> cancellation, Watchdog& watchdog);

  void soft_stop() override;
  void hard_stop() override;

  Result<void> begin(const RunRequest& request, wasi::OutputSink& output);
  Result<Outcome> conclude(const RunRequest& request, Result<Reply> reply, StopReason stop);

  std::unique_ptr<Guest> guest_;  // before the instance, which refers to it
  std::unique_ptr<wasm::Instance> instance_;
  std::unique_ptr<Cancellation> cancellation_;
  wasi::BytesInput input_;
  Watchdog& watchdog_;
  RunLimits limits_;  // of the last cell
  std::uint64_t cells_ = 0;
};

}  // namespace sw::engine
