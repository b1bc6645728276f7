// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One interpreter that runs cells one after another, its state kept between them.

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "engine/watchdog.h"
#include "sandbox_workers/base/cancellation.h"
#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/budget.h"
#include "sandbox_workers/engine/engine.h"
#include "sandbox_workers/engine/language.h"
#include "sandbox_workers/engine/run.h"
#include "sandbox_workers/wasi/streams.h"
#include "sandbox_workers/wasm/instance.h"
#include "sandbox_workers/workspace/mirror.h"

namespace sw::engine {

/// Threads: one at a time, on a thread with room for a guest's stack (wasm::run_on_guest_thread).
class Session final : public SessionInstance {
 public:
  /// `guest` is bound to `instance`, which was just made from the image. `watchdog` outlives the
  /// session.
  static Result<std::unique_ptr<Session>> create(std::unique_ptr<Guest> guest,
                                                 std::unique_ptr<wasm::Instance> instance,
                                                 Watchdog& watchdog);
  ~Session() override;

  /// The same, from a saved state: variables, functions, open files and half-consumed generators go
  /// on. Random generators differ from those of every other session restored from the state.
  static Result<std::unique_ptr<Session>> restore(std::unique_ptr<Guest> guest,
                                                  std::unique_ptr<wasm::Instance> instance,
                                                  Watchdog& watchdog, SnapshotSource& source);

  Result<Outcome> execute(const Run& run, RunEvents& events) override;
  /// Runs a program and, within what is left of its limits, its exit handlers. Then `reset`.
  Result<Outcome> run_once(const Run& run, RunEvents& events);

  bool can_snapshot() const override;
  /// `base` is the image; `extra` has open files, clock and counters: docs/formats/session.md.
  /// Errors: kInvalidArgument when the session cannot be used any more, or its memory is not its
  /// whole state.
  Result<SessionSnapshot> snapshot() override;

  /// True once the interpreter trapped, exited, was stopped by force or answered nonsense: nothing
  /// can be run in it any more.
  bool invalid() const override { return broken_ || instance_->poisoned(); }

  /// Makes the interpreter as new, with nothing left of what was run; see wasm::Instance::reset. If
  /// the verdict is not kKept the session must be dropped.
  wasm::ResetStats reset();

  Guest& guest() { return *guest_; }

 private:
  Session(std::unique_ptr<Guest> guest, std::unique_ptr<wasm::Instance> instance,
          std::unique_ptr<Cancellation> cancellation, Watchdog& watchdog);

  /// Watches the call that follows, within `limits`.
  std::unique_ptr<Budget> watch(const RunLimits& limits);
  /// What of a run does not depend on the guest.
  Result<void> prepare(const Run& run, RunEvents& events);
  Result<void> begin(const Run& run, RunEvents& events);
  /// What does, and so is watched.
  Result<Reply> run_cell(const Run& run, RunEvents& events);
  Result<Reply> evaluate_in_guest(const Run& run);
  Result<Outcome> evaluate(const Run& run, RunEvents& events);
  Result<Outcome> end(const Run& run, RunEvents& events);
  std::optional<Outcome> finish(const RunLimits& limits);
  std::optional<Outcome> ending_of_handlers(const Result<void>& finished, StopReason stop);
  void note_usage(Outcome& outcome, const BudgetResult& used) const;
  Result<Bytes> save_tmp();
  Result<void> restore_tmp(BytesView blob);
  Result<void> restore_host();
  Result<BytesView> fill_memory(SnapshotSource& source);
  Outcome conclude(Reply reply, StopReason stop);
  Result<Outcome> conclude_failure(Error error, StopReason stop);

  std::unique_ptr<Guest> guest_;  // before the instance, which refers to it
  std::unique_ptr<wasm::Instance> instance_;
  std::unique_ptr<Cancellation> cancellation_;
  std::shared_ptr<wasi::InputSource> input_;  // of the last cell; shared with its caller
  Watchdog& watchdog_;
  std::optional<Mirror> mirror_;
  Bytes saved_;       // SessionSnapshot::extra, until the files are there to restore it
  RunLimits limits_;  // of the last cell
  std::stop_token cancel_;
  std::uint64_t cells_ = 0;
  bool broken_ = false;  // the guest's driver answered what makes no sense
  // the next cell is the first since the interpreter came out of an image or a saved state
  bool fresh_ = true;
  std::int64_t monotonic_offset_ns_ = 0;
};

}  // namespace sw::engine
