// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// kill_child FOLDER SEED STATE: does one thing after another from a state that is described by the
// seeds and counts of earlier rounds, and writes a byte when each is done. The test kills it.

#include <fmt/format.h>
#include <unistd.h>

#include <exception>
#include <string>

#include "host/kill_model.h"

namespace {

using namespace sw;
using namespace sw::kill_model;

/// "SEED:COUNT" for each round before: so many operations of that seed were done.
State state_after(int rounds, char** described) {
  State state;
  for (int i = 0; i < rounds; ++i) {
    const std::string round = described[i];
    std::mt19937 random(static_cast<unsigned>(std::stoul(round)));
    for (auto left = std::stoul(round.substr(round.find(':') + 1)); left > 0; --left)
      apply(next(state, random), state);
    forget_runs(state);
  }
  return state;
}

[[noreturn]] void work(const std::string& folder, unsigned seed, State state) {
  const Host host = Host::open({.data_folder = folder}).value();
  std::mt19937 random(seed);
  for (;;) {
    const Operation operation = next(state, random);
    const auto done = perform(operation, host);
    if (!done.ok()) {
      fmt::print(stderr, "kill_child: {}\n", done.error().message);
      _exit(3);
    }
    apply(operation, state);
    if (::write(STDOUT_FILENO, "x", 1) != 1) _exit(4);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  try {
    work(argv[1], static_cast<unsigned>(std::stoul(argv[2])), state_after(argc - 3, argv + 3));
  } catch (const std::exception& problem) {
    fmt::print(stderr, "kill_child: {}\n", problem.what());
    return 1;
  }
}
