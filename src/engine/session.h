// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One interpreter that runs cells one after another, its state kept between them.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "base/files.h"
#include "base/result.h"
#include "engine/language.h"
#include "engine/outcome.h"
#include "engine/watchdog.h"
#include "wasi/streams.h"
#include "wasm/instance.h"

namespace sw::engine {

/// What a session is, between two cells: its memory, as the image with pages changed, and a few tables of the
/// host. The views are of the live session and last until its next cell.
struct SessionState {
  BytesView memory;
  BytesView image;
  /// Pages of `memory` that may differ from `image` (beyond its end: from zero).
  std::vector<wasm::PageRange> changed;
  /// Open files, clock, counters; docs/formats/session.md.
  Bytes host;
};

/// A saved session's parts, for starting one that goes on where it was.
struct SavedSession {
  std::uint64_t memory_bytes = 0;
  /// Writes the saved pages into memory that holds the image, and zeros beyond it. Returns SessionState::host,
  /// which stays valid until the session is restored.
  std::function<Result<BytesView>(std::span<std::byte> memory)> fill;
  /// The files open files refer to.
  std::shared_ptr<wasi::Tree> workspace;
};

/// Threads: one at a time, on a thread with room for a guest's stack (wasm::run_on_guest_thread).
class Session final : private Stoppable {
 public:
  /// `guest` is bound to `instance`, which was just made from the image. `watchdog` outlives the session.
  static Result<std::unique_ptr<Session>> create(std::unique_ptr<Guest> guest,
                                                 std::unique_ptr<wasm::Instance> instance, Watchdog& watchdog);
  ~Session() override;

  /// The same, from a saved state: variables, functions, open files and half-consumed generators go on. Random
  /// generators differ from those of every other session restored from the state.
  static Result<std::unique_ptr<Session>> restore(std::unique_ptr<Guest> guest,
                                                  std::unique_ptr<wasm::Instance> instance, Watchdog& watchdog,
                                                  const SavedSession& saved);

  /// Errors: kInvalidArgument when the session cannot be used any more, or its memory is not its whole state.
  Result<SessionState> capture();

  /// Runs one cell; output goes to `output` as it is printed. Errors raised by the code and limits are part of the
  /// outcome; an Error means that the host failed.
  Result<Outcome> execute(const RunRequest& request, wasi::OutputSink& output);

  /// Runs the interpreter's exit handlers within what is left of the last cell's limits; an error they end with is
  /// dropped.
  void finish();

  /// False once the interpreter trapped, exited, was stopped by force or answered nonsense: nothing can be run in
  /// it any more.
  bool usable() const { return !broken_ && !instance_->poisoned(); }

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
  void leave_to_finish(const Usage& used);
  Outcome conclude(Reply reply, StopReason stop);
  Result<Outcome> conclude_failure(Error error, StopReason stop);

  std::unique_ptr<Guest> guest_;  // before the instance, which refers to it
  std::unique_ptr<wasm::Instance> instance_;
  std::unique_ptr<Cancellation> cancellation_;
  wasi::BytesInput input_;
  Watchdog& watchdog_;
  RunLimits limits_;  // of the last cell, or what it left of them
  std::uint64_t cells_ = 0;
  bool broken_ = false;  // the guest's driver answered what makes no sense
  bool fresh_ = true;    // the next cell is the first since the interpreter came out of an image or a saved state
  std::int64_t monotonic_offset_ns_ = 0;
};

}  // namespace sw::engine
