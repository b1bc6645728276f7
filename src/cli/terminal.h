// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a run prints, and how it ended, on this process's standard streams.

#include <string_view>

#include "sandbox_workers/engine/outcome.h"
#include "sandbox_workers/wasi/streams.h"

namespace sw::cli {

/// Passes output on as it is printed.
class TerminalSink final : public wasi::OutputSink {
 public:
  wasi::Errno write(wasi::Stream stream, BytesView bytes) override;
  int poll_fd(wasi::Stream stream) const override;
};

void write_text(wasi::OutputSink& sink, wasi::Stream stream, std::string_view text);

/// Shows how a run ended, as a REPL would.
void show(const engine::Outcome& outcome, wasi::OutputSink& sink);

}  // namespace sw::cli
