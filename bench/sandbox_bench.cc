// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_bench.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <utility>
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
  Steps(const std::shared_ptr<engine::Engine>& engine, std::string code,
        Durability durability = Durability::kCommit, int warm_up = kWarmUp)
      : host_(must(Host::open({.data_folder = folder_.path() / "data", .engines = {engine}}))),
        sandbox_(host_.sandbox("bench")),
        run_{.language = engine->info().language, .code = std::move(code)} {
    run_.limits.wall_max = std::chrono::minutes(10);
    run_.durability = durability;
    for (int i = 0; i < warm_up; ++i) take();
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

void sync_8k(benchmark::State& state) {
  constexpr std::size_t kBytes = 8192;
  constexpr std::size_t kFileBytes = std::size_t{4} << 20;
  const Folder folder;
  const int file = ::open((folder.path() / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const std::vector<char> content(kFileBytes);
  if (file < 0 || ::write(file, content.data(), kFileBytes) != kFileBytes || ::fsync(file) != 0)
    fail("no file can be written");
  std::size_t at = 0;
  for (auto _ : state) {
    if (::pwrite(file, content.data(), kBytes, static_cast<off_t>(at)) != kBytes ||
        ::fdatasync(file) != 0)
      fail("the file cannot be written");
    at = (at + kBytes) % kFileBytes;
  }
  ::close(file);
}

void sandbox_step(benchmark::State& state, const std::shared_ptr<engine::Engine>& engine,
                  const std::string& code, Durability durability) {
  Steps steps(engine, code, durability);
  for (auto _ : state) steps.take();
}

void sandbox_step_late(benchmark::State& state, const std::shared_ptr<engine::Engine>& engine,
                       const std::string& code) {
  constexpr int kEarly = 10;
  constexpr int kCompared = 100;
  constexpr int kLate = 1000;
  Steps steps(engine, code, Durability::kRelaxed, kEarly);
  std::vector<double> early;
  for (int i = 0; i < kCompared; ++i) early.push_back(steps.take());
  for (int i = kEarly + kCompared; i < kLate; ++i) steps.take();
  std::vector<double> late;
  for (auto _ : state) late.push_back(steps.take());
  state.counters["early_ms"] = median(early);
  state.counters["times_early"] = median(late) / median(early);
}

namespace {

constexpr int kContextsAtOnce = 64;
constexpr int kRunners = 2;

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Runs a cell in each context, again when it has ended, until there were so many.
class Stepper {
 public:
  Stepper(const Sandbox& sandbox, Run run, int contexts)
      : sandbox_(sandbox), run_(std::move(run)), contexts_(contexts) {}

  void take(int steps) {
    left_ = steps;
    const int at_once = std::min(contexts_, steps);
    running_ = at_once;
    for (int i = 0; i < at_once; ++i) begin(i);
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return running_ == 0; });
  }

 private:
  void begin(int context) {
    {
      const std::lock_guard lock(mutex_);
      if (left_ == 0) {
        if (--running_ == 0) ended_.notify_all();
        return;
      }
      --left_;
    }
    Run run = run_;
    run.context = "c" + std::to_string(context);
    sandbox_.start(std::move(run), ignored_, [this, context](const Result<Outcome>& outcome) {
      if (!outcome.ok()) fail(outcome.error().message);
      begin(context);
    });
  }

  const Sandbox sandbox_;
  const Run run_;
  const int contexts_;
  RunOutput ignored_;
  std::mutex mutex_;
  std::condition_variable ended_;
  int left_ = 0;
  int running_ = 0;
};

double steps_per_second(Stepper& stepper, int steps) {
  const auto begin = std::chrono::steady_clock::now();
  stepper.take(steps);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return steps / took.count();
}

}  // namespace

void steps_at_once(benchmark::State& state, const std::shared_ptr<engine::Engine>& engine,
                   const std::string& code) {
  constexpr int kSteps = 1000;
  const Folder folder;
  const Host host = must(Host::open(
      {.data_folder = folder.path() / "data", .runs_at_once = kRunners, .engines = {engine}}));
  const Sandbox sandbox = host.sandbox("bench");
  Run run{.language = engine->info().language, .code = code};
  run.limits.wall_max = std::chrono::minutes(10);
  Stepper alone(sandbox, run, 1);
  Stepper at_once(sandbox, run, kContextsAtOnce);
  at_once.take(kContextsAtOnce * 5);
  const double one = steps_per_second(alone, kSteps / 2);
  double many = 0;
  double cpu = 0;
  std::int64_t rounds = 0;
  for (auto _ : state) {
    const double before = cpu_seconds();
    many += steps_per_second(at_once, kSteps);
    cpu += cpu_seconds() - before;
    ++rounds;
  }
  const auto times = static_cast<double>(rounds);
  state.counters["steps_per_s"] = many / times;
  state.counters["times_one"] = many / times / one;
  state.counters["cpu_ms"] = cpu * 1e3 / times / kSteps;
  state.counters["of_two_cores"] = many / times * (cpu / times / kSteps) / 2;
}

void sandbox_fork(benchmark::State& state, const std::shared_ptr<engine::Engine>& engine,
                  const std::string& code) {
  constexpr std::size_t kFileBytes = std::size_t{10} << 20;
  const Folder folder;
  const Host host = must(Host::open({.data_folder = folder.path() / "data",
                                     .sandboxes = {.files = {.file_bytes_max = kFileBytes,
                                                             .tree_bytes_max = 20 * kFileBytes,
                                                             .entries_max = 4096}},
                                     .engines = {engine}}));
  const Sandbox sandbox = host.sandbox("bench");
  for (int i = 0; i < 10; ++i) {
    const std::string name = "file-" + std::to_string(i);
    must(sandbox.files().write(name, std::string(kFileBytes, static_cast<char>('a' + i))));
  }
  for (int i = 0; i < 4; ++i) {
    Run run{.language = engine->info().language, .code = code, .context = "c" + std::to_string(i)};
    must(sandbox.run(std::move(run)));
  }
  int forks = 0;
  for (auto _ : state) {
    must(sandbox.fork("fork-" + std::to_string(forks++)));
  }
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
