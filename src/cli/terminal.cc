// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

namespace sw::cli {

wasi::Errno TerminalSink::write(wasi::Stream stream, BytesView bytes) {
  const int fd = poll_fd(stream);
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return wasi::errno_from_host(errno);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return wasi::Errno::kSuccess;
}

int TerminalSink::poll_fd(wasi::Stream stream) const {
  return stream == wasi::Stream::kStdout ? STDOUT_FILENO : STDERR_FILENO;
}

void write_text(wasi::OutputSink& sink, wasi::Stream stream, std::string_view text) {
  (void)sink.write(stream, as_bytes(text));
}

void show(const engine::Outcome& outcome, wasi::OutputSink& sink) {
  if (outcome.error) {
    const engine::GuestError& error = *outcome.error;
    std::string text;
    for (const std::string& line : error.traceback) text += line + '\n';
    // Tracebacks of the languages end with, or begin by, saying what the error is; those of limits do not.
    if (outcome.ending == engine::Ending::kCancelled) text += "sandbox-workers: interrupted\n";
    else if (text.find(error.name) == std::string::npos)
      text += fmt::format("{}: {}\n", error.name, error.message);
    write_text(sink, wasi::Stream::kStderr, text);
  } else if (outcome.value) {
    write_text(sink, wasi::Stream::kStdout, outcome.value->text + '\n');
  }
  if (outcome.usage.output_truncated) {
    write_text(sink, wasi::Stream::kStderr, "sandbox-workers: output past the limit was dropped\n");
  }
}

}  // namespace sw::cli
