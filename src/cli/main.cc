// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <exception>
#include <string>
#include <vector>

#include "base/standard_streams.h"
#include "cli/command_line.h"
#include "cli/statuses.h"

int main(int argc, char** argv) {
  // A reader that went away, or a file that must not grow, is an error of the write, not the end of
  // the process.
  for (const int signal : {SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_IGN);
  sw::occupy_standard_streams();
  sw::cli::Streams streams({});
  sw::cli::Signals signals;
  const sw::cli::Caller caller{.streams = streams, .interrupts = signals};
  try {
    return sw::cli::perform_command(caller, std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& problem) {
    streams.complain(problem.what());
    return sw::cli::kStatusHostFault;
  }
}
