// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/standard_streams.h"

namespace sw::cli {

namespace {

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

}  // namespace

wasi::Errno TerminalSink::write(wasi::Stream stream, BytesView bytes) {
  const int failed = write_all(poll_fd(stream), bytes);
  if (failed == 0) return wasi::Errno::kSuccess;
  if (stream == wasi::Stream::kStdout && !stdout_failure_) stdout_failure_ = failed;
  if (++failures_ == kFailuresMax && give_up_) give_up_();
  return wasi::errno_from_host(failed);
}

int TerminalSink::poll_fd(wasi::Stream stream) const {
  return stream == wasi::Stream::kStdout ? STDOUT_FILENO : STDERR_FILENO;
}

void write_text(RunEvents& sink, wasi::Stream stream, std::string_view text) {
  (void)sink.write(stream, as_bytes(text));
}

std::string printable(std::string_view name) {
  std::string text(name);
  std::ranges::replace_if(text, is_control, '?');
  return text;
}

void complain(std::string_view message) {
  std::string text(message);
  std::ranges::replace_if(
      text, [](char c) { return is_control(c) && c != '\n'; }, '?');
  tell("sandbox-workers: {}\n", text);
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
