// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Runs hostile programs composed at random, and says which of them did what no program must be able
// to do: README.md.

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <exception>
#include <random>

#include "hostile/trial.h"

namespace {

using namespace sw::hostile;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kShownBytesMax = 3000;
// No program has a limit near it.
constexpr std::chrono::minutes kHangs{5};

struct Options {
  std::string language;
  std::uint64_t count = 200;
  std::uint64_t seed = 0;
  std::string command;
  bool print = false;
};

/// What the process that runs the programs tells the one that watches it.
struct Shared {
  std::atomic<std::uint64_t> done{0};  ///< programs
  std::atomic<std::int64_t> began{0};  ///< the one that runs; on Clock
  std::atomic<std::uint64_t> failed{0};
  std::atomic<std::uint64_t> image_bytes{0};
};

sw::Result<Grammar> read_grammar(const std::string& language) {
  const std::filesystem::path tests(SW_TESTS_FOLDER);
  return Grammar::read(tests / "hostile" / (language + ".grammar"), tests / "cases" / language);
}

void report(const Options& options, const Plan& plan, const Complaints& complaints) {
  fmt::print("FAILED {} seed {}", options.language, plan.seed);
  for (const std::string& complaint : complaints) fmt::print("\n  {}", complaint);
  fmt::print("\n{}again: ./dev test hostile {} --seed {} --count 1\n\n",
             describe(plan, kShownBytesMax), options.language, plan.seed);
  std::fflush(stdout);
}

void show_totals(const Options& options, const Totals& totals, std::uint64_t first) {
  std::string endings;
  for (const auto& [ending, count] : totals.endings)
    endings += fmt::format(", {} {}", count, ending);
  fmt::print("{}: seeds {} to {}{}; at most {:.2f} s of CPU time and {} MiB in one run\n",
             options.language, first, options.seed + options.count - 1, endings,
             std::chrono::duration<double>(totals.cpu_longest).count(), totals.memory_most >> 20);
  std::fflush(stdout);
}

sw::Result<void> run_programs(const Options& options, Shared& shared) {
  SW_TRY(const Grammar grammar, read_grammar(options.language));
  SW_TRY(const auto trial, Trial::create(options.language, options.command));
  const std::uint64_t first = options.seed + shared.done;
  SW_TRY(const std::uint64_t image_bytes, [&] {
    sw::Result<std::uint64_t> bytes = sw::Error{};
    const auto ran = trial->on_guest_thread([&] { bytes = trial->image_bytes(); });
    return ran.ok() ? bytes : ran.error();
  }());
  shared.image_bytes = image_bytes;
  SW_CHECK_OK(trial->on_guest_thread([&] {
    for (; shared.done < options.count; ++shared.done) {
      const Plan plan = draw_plan(grammar, options.seed + shared.done, image_bytes);
      shared.began = Clock::now().time_since_epoch().count();
      const Complaints complaints = trial->carry_out(plan);
      if (complaints.empty()) continue;
      ++shared.failed;
      report(options, plan, complaints);
    }
  }));
  show_totals(options, trial->totals(), first);
  return {};
}

/// Runs programs from the first that was not yet run, in a process of its own. Returns how it
/// ended.
std::string run_in_child(const Options& options, Shared& shared) {
  std::fflush(nullptr);
  shared.began = Clock::now().time_since_epoch().count();
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto ran = run_programs(options, shared);
    if (!ran.ok()) fmt::print("hostile: {}\n", ran.error().message);
    std::fflush(nullptr);
    ::_exit(ran.ok() ? 0 : 3);
  }
  sigset_t ended;
  ::sigemptyset(&ended);
  ::sigaddset(&ended, SIGCHLD);
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    const timespec second{.tv_sec = 1, .tv_nsec = 0};
    ::sigtimedwait(&ended, nullptr, &second);
    const Clock::time_point began{Clock::duration(shared.began)};
    if (shared.image_bytes != 0 && Clock::now() - began > kHangs) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return "it did not end";
    }
  }
  if (WIFSIGNALED(status))
    return fmt::format("it ended the process by signal {}", WTERMSIG(status));
  return WEXITSTATUS(status) == 0
             ? ""
             : fmt::format("it ended the process with status {}", WEXITSTATUS(status));
}

sw::Result<int> watch(const Options& options) {
  SW_TRY(const Grammar grammar, read_grammar(options.language));
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return sw::Error{sw::ErrorCode::kInternal, "no memory to share", 0};
  auto& shared = *new (memory) Shared;
  while (shared.done < options.count) {
    const std::uint64_t at = shared.done;
    const std::string ending = run_in_child(options, shared);
    if (ending.empty()) break;
    if (shared.image_bytes == 0)
      return sw::Error{sw::ErrorCode::kInternal, "no program was run", 0};
    ++shared.failed;
    const Plan plan = draw_plan(grammar, options.seed + shared.done, shared.image_bytes);
    report(options, plan,
           {ending, fmt::format("the process began with seed {}", options.seed + at)});
    ++shared.done;
  }
  fmt::print("{}: {} programs from seed {}, {} failed\n", options.language, options.count,
             options.seed, shared.failed.load());
  return shared.failed == 0 ? 0 : 1;
}

sw::Result<int> run(const Options& options) {
  if (!options.print) return watch(options);
  SW_TRY(const Grammar grammar, read_grammar(options.language));
  // The memory's size decides limits, not programs.
  for (std::uint64_t i = 0; i < options.count; ++i) {
    fmt::print("seed {}: {}", options.seed + i,
               describe(draw_plan(grammar, options.seed + i, 0), SIZE_MAX));
  }
  return 0;
}

int run_program(int argc, char** argv) {
  CLI::App app("Runs hostile programs composed at random", "hostile");
  Options options;
  options.seed = std::random_device()();
  app.add_option("language", options.language, "Language")->required();
  app.add_option("--count", options.count, "Programs")->capture_default_str();
  app.add_option("--seed", options.seed, "Of the first program; the next one has the next seed");
  app.add_option("--command", options.command, "Path of sandbox-workers")->required();
  app.add_flag("--print", options.print, "Only show the programs");
  CLI11_PARSE(app, argc, argv);
  // Taken by sigtimedwait, in the process that waits for the other.
  sigset_t ended;
  ::sigemptyset(&ended);
  ::sigaddset(&ended, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &ended, nullptr);
  const auto status = run(options);
  if (status.ok()) return *status;
  fmt::print(stderr, "hostile: {}\n", status.error().message);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_program(argc, argv);
  } catch (const std::exception& problem) {
    fmt::print(stderr, "hostile: {}\n", problem.what());
    return 2;
  }
}
