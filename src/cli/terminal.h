// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a run prints, and how it ended, on the streams of whoever asked for it.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "cli/streams.h"
#include "sandbox_workers/engine/run.h"
#include "sandbox_workers/wasi/streams.h"

namespace sw::cli {

/// Passes output on as it is printed. A write that fails is the program's to deal with; that it
/// happened is kept for the exit status.
class TerminalSink final : public RunEvents {
 public:
  /// `give_up` is called, once, when so many writes have failed that the program does not care, and
  /// might go on for ever: it should end the run.
  explicit TerminalSink(Streams& streams, std::function<void()> give_up = {})
      : streams_(streams), give_up_(std::move(give_up)) {}

  wasi::Errno write(wasi::Stream stream, BytesView bytes) override;
  int poll_fd(wasi::Stream stream) const override { return streams_.fd(stream); }

  /// The errno of the first write to stdout that failed.
  std::optional<int> stdout_failure() const { return stdout_failure_; }
  bool gave_up() const { return failures_ >= kFailuresMax; }

 private:
  // An interpreter that ends because of the first may try a few more to say so.
  static constexpr int kFailuresMax = 100;

  Streams& streams_;
  std::function<void()> give_up_;
  std::optional<int> stdout_failure_;
  int failures_ = 0;
};

void write_text(RunEvents& sink, wasi::Stream stream, std::string_view text);

/// Shows how a run ended, as a REPL would.
void show(const Outcome& outcome, RunEvents& sink);

}  // namespace sw::cli
