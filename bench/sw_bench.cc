// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Names and meaning: README.md beside this file. Native interpreters are run in turn with the
// guests, so that ratios hold although the machine's speed drifts.

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <boost/process.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "context_bench.h"
#include "files_bench.h"
#include "host/lazy_engine.h"
#include "must.h"
#include "sandbox_bench.h"
#include "sandbox_workers/base/files.h"
#include "sandbox_workers/engine/all_languages.h"
#include "sandbox_workers/wasm/guest_thread.h"

namespace sw {
namespace {

namespace fs = std::filesystem;
namespace process = boost::process;

struct Native {
  std::string program;
  std::vector<std::string> print_own_path;
  std::vector<std::string> do_nothing;
  std::vector<std::string> print_one;
  std::string ending;  // of the programs' files
};

const std::map<std::string, Native>& natives() {
  static const std::map<std::string, Native> all = {
      {"javascript",
       {"node", {"-p", "process.execPath"}, {"-e", "1"}, {"-e", "console.log(1)"}, ".js"}},
      {"perl", {"perl", {"-e", "print $^X"}, {"-e", "1"}, {"-e", "print 1"}, ".pl"}},
      {"python",
       {"python3",
        {"-c", "import sys; print(sys.executable)"},
        {"-c", "pass"},
        {"-c", "print(1)"},
        ".py"}},
      {"ruby", {"ruby", {"-e", "print RbConfig.ruby"}, {"-e", "1"}, {"-e", "puts 1"}, ".rb"}},
  };
  return all;
}

/// Runs a program to its end and returns what it printed.
std::string run_process(const fs::path& program, const std::vector<std::string>& arguments) {
  process::ipstream out;
  process::child child(program.native(), process::args(arguments),
                       process::std_in<process::null, process::std_out> out);
  std::string text(std::istreambuf_iterator<char>(out), {});
  child.wait();
  if (child.exit_code() != 0)
    fail(fmt::format("{} ended with {}", program.native(), child.exit_code()));
  return text;
}

/// The interpreter itself: what the search path names may be a script of a version manager, which
/// takes longer than the interpreter's own start.
fs::path find_interpreter(const Native& native) {
  const auto path = process::search_path(native.program);
  if (path.empty()) fail(native.program + " is not installed");
  std::string own_path = run_process(path.native(), native.print_own_path);
  own_path.erase(own_path.find_last_not_of('\n') + 1);
  return own_path;
}

std::int64_t page_faults() {
  rusage usage = {};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

Run request_for(std::string code) {
  Run request;
  request.code = std::move(code);
  request.limits.wall_max = std::chrono::minutes(10);
  return request;
}

Outcome run_in_sandbox(engine::Engine& engine, const Run& request, RunOutput& sink) {
  Outcome outcome = must(engine.run(request, sink));
  if (outcome.error) fail(fmt::format("{}: {}", outcome.error->name, outcome.error->message));
  return outcome;
}

void fresh(benchmark::State& state, const std::shared_ptr<engine::Engine>& engine,
           const std::string& code) {
  const Run request = request_for(code);
  RunOutput sink;
  for (int i = 0; i < 20; ++i) run_in_sandbox(*engine, request, sink);
  const std::int64_t faults = page_faults();
  std::uint64_t pages = 0;
  for (auto _ : state) pages += run_in_sandbox(*engine, request, sink).usage.pages_written;
  const auto runs = static_cast<double>(state.iterations());
  state.counters["pages_put_back"] = static_cast<double>(pages) / runs;
  state.counters["page_faults"] = static_cast<double>(page_faults() - faults) / runs;
}

/// A fresh instance per run, as after a run that cannot be kept: what keeping the instance saves.
void fresh_instance(benchmark::State& state, const std::shared_ptr<engine::Engine>& engine) {
  const Run request = request_for("1+1");
  RunOutput sink;
  const std::int64_t faults = page_faults();
  for (auto _ : state) {
    const auto session = must(engine->boot());
    must(session->execute(request, sink));
  }
  state.counters["page_faults"] =
      static_cast<double>(page_faults() - faults) / static_cast<double>(state.iterations());
}

/// What types cost: the program with them and the same one without, each a fresh run of its own.
void typescript(benchmark::State& state, const std::shared_ptr<engine::Engine>& engine,
                const fs::path& file) {
  Run with_types = request_for(must(read_text_file(file)));
  with_types.file_name = file.filename().native();
  Run strip = request_for(
      "console.log(require('module').stripTypeScriptTypes(fs.readFileSync(0, 'utf8')))");
  strip.input = text_input(with_types.code);
  RunOutput printed;
  run_in_sandbox(*engine, strip, printed);
  const Run stripped = request_for(printed.out);
  RunOutput sink;
  for (int i = 0; i < 5; ++i) run_in_sandbox(*engine, with_types, sink);
  double stripped_ms = 0;
  double all_ms = 0;
  for (auto _ : state) {
    const auto milliseconds = [&](const Run& request) {
      return std::chrono::duration<double, std::milli>(
                 run_in_sandbox(*engine, request, sink).usage.cpu)
          .count();
    };
    const double without = milliseconds(stripped);
    const double all = milliseconds(with_types);
    stripped_ms += without;
    all_ms += all;
    state.SetIterationTime(std::max(all - without, 0.0) / 1e3);
  }
  const auto runs = static_cast<double>(state.iterations());
  state.counters["with_types_ms"] = all_ms / runs;
  state.counters["without_ms"] = stripped_ms / runs;
}

void start_process(benchmark::State& state, const fs::path& program,
                   const std::vector<std::string>& arguments) {
  for (auto _ : state) benchmark::DoNotOptimize(run_process(program, arguments));
}

/// "MILLISECONDS RESULT", as the programs print it.
struct Measured {
  double milliseconds = 0;
  std::string result;
};

Measured parse(const std::string& text) {
  Measured measured;
  std::istringstream words(text);
  words >> measured.milliseconds >> measured.result;
  if (measured.result.empty()) fail("a program printed: " + text);
  return measured;
}

void guest_program(benchmark::State& state, const std::shared_ptr<engine::Engine>& engine,
                   const fs::path& interpreter, const fs::path& file) {
  const Run request = request_for(must(read_text_file(file)));
  const bool has_jit = interpreter.filename() == "node";
  double native_ms = 0;
  double without_jit_ms = 0;
  double guest_ms = 0;
  for (auto _ : state) {
    RunOutput sink;
    run_in_sandbox(*engine, request, sink);
    const Measured in_guest = parse(sink.out);
    const Measured natively = parse(run_process(interpreter, {file.native()}));
    if (in_guest.result != natively.result)
      fail(fmt::format("{}: guest and native differ", file.native()));
    if (has_jit)
      without_jit_ms +=
          parse(run_process(interpreter, {"--jitless", "--no-expose-wasm", file.native()}))
              .milliseconds;
    guest_ms += in_guest.milliseconds;
    native_ms += natively.milliseconds;
    state.SetIterationTime(in_guest.milliseconds / 1e3);
  }
  const auto runs = static_cast<double>(state.iterations());
  state.counters["native_ms"] = native_ms / runs;
  state.counters["times_native"] = guest_ms / native_ms;
  if (has_jit) state.counters["times_jitless"] = guest_ms / without_jit_ms;
}

void register_language(const std::string& language, const Load& load, const fs::path& own_program) {
  const Native& native = natives().at(language);
  const fs::path interpreter = find_interpreter(native);
  benchmark::RegisterBenchmark(("fresh/" + language).c_str(), [=](benchmark::State& s) {
    fresh(s, load(), "1+1");
  })->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark(("fresh_instance/" + language).c_str(), [=](benchmark::State& s) {
    fresh_instance(s, load());
  })->Unit(benchmark::kMillisecond);
  if (language == "javascript") {
    benchmark::RegisterBenchmark(
        "typescript/50_lines",
        [=](benchmark::State& s) {
          typescript(s, load(), fs::path(SW_BENCH_PROGRAMS) / "typescript_50_lines.ts");
        })
        ->Unit(benchmark::kMillisecond)
        ->UseManualTime();
  }
  if (language == "python") {
    benchmark::RegisterBenchmark("fresh_pandas/python", [=](benchmark::State& s) {
      fresh(s, load(), "import pandas");
    })->Unit(benchmark::kMillisecond);
  }
  benchmark::RegisterBenchmark(
      ("native_start/" + language).c_str(),
      [=](benchmark::State& s) { start_process(s, interpreter, native.do_nothing); })
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
  benchmark::RegisterBenchmark(
      ("process/" + language).c_str(),
      [=](benchmark::State& s) {
        start_process(s, own_program, {"run", "-l", language, "-c", native.print_one[1]});
      })
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
  benchmark::RegisterBenchmark(
      ("native_process/" + language).c_str(),
      [=](benchmark::State& s) { start_process(s, interpreter, native.print_one); })
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
  for (const char* name : {"fib", "loops", "dict", "string", "json", "sort", "regex"}) {
    const fs::path file =
        fs::path(SW_BENCH_PROGRAMS) / fmt::format("run_{}{}", name, native.ending);
    if (!fs::exists(file)) continue;
    benchmark::RegisterBenchmark(
        fmt::format("guest/{}/{}", language, name).c_str(),
        [=](benchmark::State& s) { guest_program(s, load(), interpreter, file); })
        ->Unit(benchmark::kMillisecond)
        ->UseManualTime()
        ->Iterations(3);
  }
}

/// What the checks of code that stops by a trap cost: compare with guest/javascript/fib.
void register_checked(const Load& load) {
  const fs::path file = fs::path(SW_BENCH_PROGRAMS) / "run_fib.js";
  const fs::path interpreter = find_interpreter(natives().at("javascript"));
  benchmark::RegisterBenchmark(
      "guest_checked/javascript/fib",
      [=](benchmark::State& s) { guest_program(s, load(), interpreter, file); })
      ->Unit(benchmark::kMillisecond)
      ->UseManualTime()
      ->Iterations(3);
}

void register_many(const Load& load) {
  benchmark::RegisterBenchmark(
      "read_beside_busy_sandboxes",
      [=](benchmark::State& s) { read_beside_busy_sandboxes(s, load(), "for (;;) {}"); })
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
  benchmark::RegisterBenchmark("run_beside_sleepers",
                               [=](benchmark::State& s) {
                                 run_beside_sleepers(
                                     s, load(), "await new Promise(done => setTimeout(done, 1e8))");
                               })
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

void register_storage(const Load& load) {
  benchmark::RegisterBenchmark("fdatasync/8k", sync_8k)
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
  benchmark::RegisterBenchmark("sandbox_fork/100mb",
                               [=](benchmark::State& s) { sandbox_fork(s, load(), "let x = 1"); })
      ->Unit(benchmark::kMillisecond)
      ->Iterations(200)  // the forks stay
      ->UseRealTime();
}

/// Prepares the language if need be, which can take minutes.
Load loader(engine::Machine& machine, std::unique_ptr<engine::Language> language) {
  const std::shared_ptr<host::LazyEngine> lazy =
      must(host::LazyEngine::create(machine, std::move(language), [](std::string_view step, auto) {
        if (!step.empty()) fmt::print(stderr, "sw_bench: {}\n", step);
      }));
  return [lazy] { return must(lazy->load()); };
}

int run(int argc, char** argv) {
  const fs::path own_program = fs::canonical("/proc/self/exe").parent_path() / "sandbox-workers";
  const auto machine = must(engine::Machine::create());
  for (auto& language : must(engine::all_languages())) {
    const std::string id = language->manifest().language;
    const Load load = loader(*machine, std::move(language));
    register_language(id, load, own_program);
    register_context_benchmarks(id, load);
    if (id != "javascript") continue;
    register_many(load);
    register_files_benchmarks(load);
    register_storage(load);
  }
  const auto checked = must(engine::Machine::create({.stop_means = wasm::StopMeans::kEpoch}));
  register_checked(loader(*checked, must(engine::find_language("javascript"))));
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const auto ran = machine->on_guest_thread([] { benchmark::RunSpecifiedBenchmarks(); });
  benchmark::ClearRegisteredBenchmarks();  // they hold engines, which must go before the machines
  return ran.ok() ? 0 : 1;
}

}  // namespace
}  // namespace sw

int main(int argc, char** argv) {
  try {
    return sw::run(argc, argv);
  } catch (const std::exception& problem) {
    fmt::print(stderr, "sw_bench: {}\n", problem.what());
    return 1;
  }
}
