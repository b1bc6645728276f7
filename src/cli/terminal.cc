// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <fmt/format.h>

namespace sw::cli {

wasi::Errno TerminalSink::write(wasi::Stream stream, BytesView bytes) {
  const int failed = streams_.write(stream, bytes);
  if (failed == 0) return wasi::Errno::kSuccess;
  if (stream == wasi::Stream::kStdout && !stdout_failure_) stdout_failure_ = failed;
  if (++failures_ == kFailuresMax && give_up_) give_up_();
  return wasi::errno_from_host(failed);
}

void write_text(RunEvents& sink, wasi::Stream stream, std::string_view text) {
  (void)sink.write(stream, as_bytes(text));
}

void show(const Outcome& outcome, RunEvents& sink) {
  if (outcome.error) {
    const GuestError& error = *outcome.error;
    std::string text;
    for (const std::string& line : error.traceback) text += line + '\n';
    // Tracebacks of the languages end with, or begin by, saying what the error is; those of limits
    // do not.
    if (outcome.ending == Ending::kCancelled) text += "sandbox-workers: interrupted\n";
    else if (text.find(error.name) == std::string::npos)
      text += fmt::format("{}: {}\n", error.name, error.message);
    write_text(sink, wasi::Stream::kStderr, text);
  } else if (outcome.value) {
    write_text(sink, wasi::Stream::kStdout, outcome.value->text + '\n');
  }
  if (outcome.usage.output_truncated) {
    write_text(sink, wasi::Stream::kStderr, "sandbox-workers: output truncated at its limit\n");
  }
}

}  // namespace sw::cli
