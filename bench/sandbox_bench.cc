// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_bench.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <vector>

#include "folder.h"
#include "must.h"
#include "sandbox_workers/host.h"

extern char** environ;

namespace sw {

namespace {

constexpr int kWarmUp = 20;
constexpr int kAlone = 200;  // steps measured before the load, and again after it
constexpr int kBusyProcesses = 2;

/// Processes that compute as long as it lives. They look after their parent, so none is left when
/// that is killed.
class BusyProcesses {
 public:
  BusyProcesses() {
    for (int i = 0; i < kBusyProcesses; ++i) {
      std::string program = "sh";
      std::string option = "-c";
      std::string script =
          "while [ -d /proc/$PPID ]; do i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; done";
      char* const arguments[] = {program.data(), option.data(), script.data(), nullptr};
      // Not by fork, after which every page of this process would have to be copied.
      pid_t process = 0;
      if (::posix_spawn(&process, "/bin/sh", nullptr, nullptr, arguments, environ) != 0) {
        fail("no process can be started");
      }
      processes_.push_back(process);
    }
  }
  ~BusyProcesses() {
    for (const pid_t process : processes_) ::kill(process, SIGKILL);
    for (const pid_t process : processes_) ::waitpid(process, nullptr, 0);
  }
  BusyProcesses(const BusyProcesses&) = delete;
  BusyProcesses& operator=(const BusyProcesses&) = delete;

 private:
  std::vector<pid_t> processes_;
};

/// A context of a sandbox on disk.
class Steps {
 public:
  Steps(const std::shared_ptr<engine::Engine>& engine, std::string code)
      : host_(must(Host::open({.data_folder = folder_.path() / "data", .engines = {engine}}))),
        sandbox_(host_.sandbox("bench")),
        run_{.language = engine->info().language, .code = std::move(code)} {
    run_.limits.wall_max = std::chrono::minutes(10);
    for (int i = 0; i < kWarmUp; ++i) take();
  }

  /// How long it took.
  double take() {
    const auto begin = std::chrono::steady_clock::now();
    const Outcome outcome = must(sandbox_.run(run_));
    const auto took = std::chrono::steady_clock::now() - begin;
    if (outcome.error) fail(outcome.error->message);
    return std::chrono::duration<double, std::milli>(took).count();
  }

 private:
  const Folder folder_;
  const Host host_;
  const Sandbox sandbox_;
  Run run_;
};

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

void sandbox_step(benchmark::State& state, const std::shared_ptr<engine::Engine>& engine,
                  const std::string& code) {
  Steps steps(engine, code);
  for (auto _ : state) steps.take();
}

void step_under_load(benchmark::State& state, const std::shared_ptr<engine::Engine>& engine,
                     const std::string& code) {
  Steps steps(engine, code);
  std::vector<double> alone;
  std::vector<double> loaded;
  for (int i = 0; i < kAlone; ++i) alone.push_back(steps.take());
  {
    const BusyProcesses load;
    for (int i = 0; i < kWarmUp; ++i) steps.take();
    for (auto _ : state) loaded.push_back(steps.take());
  }
  for (int i = 0; i < kAlone; ++i) alone.push_back(steps.take());
  state.counters["alone_ms"] = mean(alone);
  state.counters["times_alone"] = mean(loaded) / mean(alone);
  state.counters["median_ms"] = median(loaded);
  state.counters["alone_median_ms"] = median(alone);
}

namespace {

constexpr int kSandboxes = 200;
constexpr int kBusySandboxes = 64;
constexpr int kSleepers = 1000;

/// Runs that are interrupted when it goes.
class Background {
 public:
  explicit Background(const Host& host) : host_(host) {}
  ~Background() {
    for (RunHandle& run : runs_) run.interrupt();
    for (RunHandle& run : runs_) (void)run.wait();
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  void start(const std::string& sandbox, const Run& run) {
    runs_.push_back(host_.sandbox(sandbox).start(run, ignored_));
  }

 private:
  const Host& host_;
  RunOutput ignored_;
  std::vector<RunHandle> runs_;
};

double threads_of_this_process() {
  std::error_code failed;
  return static_cast<double>(
      std::distance(std::filesystem::directory_iterator("/proc/self/task", failed), {}));
}

}  // namespace

void read_beside_busy_sandboxes(benchmark::State& state,
                                const std::shared_ptr<engine::Engine>& engine,
                                const std::string& endless) {
  const Host host = must(Host::open({.runs_at_once = 2, .engines = {engine}}));
  const auto name = [](int i) { return "sandbox-" + std::to_string(i); };
  for (int i = 0; i < kSandboxes; ++i) {
    must(host.sandbox(name(i)).files().write("file", "content"));
  }
  Background busy(host);
  Run run{.language = engine->info().language, .code = endless};
  run.limits.wall_max = {};
  for (int i = 0; i < kBusySandboxes; ++i) busy.start(name(i), run);
  double longest = 0;
  int next = kBusySandboxes;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    must(host.sandbox(name(next)).files().read_text("file"));
    const auto took = std::chrono::steady_clock::now() - begin;
    longest = std::max(longest, std::chrono::duration<double, std::milli>(took).count());
    next = next + 1 < kSandboxes ? next + 1 : kBusySandboxes;
  }
  state.counters["longest_ms"] = longest;
}

void run_beside_sleepers(benchmark::State& state, const std::shared_ptr<engine::Engine>& engine,
                         const std::string& sleep) {
  constexpr std::size_t kGuestsMax = 128;
  const Host host =
      must(Host::open({.runs_at_once = 2, .guests_max = kGuestsMax, .engines = {engine}}));
  Background sleepers(host);
  Run run{.language = engine->info().language, .code = sleep};
  run.limits.wall_max = {};
  // One less than there may be, so that there is room for the run that is measured.
  for (int i = 0; i < kSleepers; ++i) {
    sleepers.start("sleeper-" + std::to_string(i % static_cast<int>(kGuestsMax - 1)), run);
  }
  const Run quick{.language = run.language, .code = "1"};
  for (auto _ : state) must(host.run(quick));
  state.counters["threads"] = threads_of_this_process();
}

}  // namespace sw
