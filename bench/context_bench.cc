// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "context_bench.h"

#include <benchmark/benchmark.h>

#include <fstream>
#include <map>

#include "folder.h"
#include "must.h"
#include "sandbox_bench.h"
#include "sandbox_workers/interpreter/runtime_worker.h"

namespace sw {

namespace {

/// What is measured, in each language.
struct Programs {
  std::string set;      // the small step
  std::string use;      // the first cell after a restore
  std::string big;      // leaves 100 MB that no image has
  std::string use_big;  // looks at a little of it
};

const std::map<std::string, Programs>& programs() {
  static const std::map<std::string, Programs> all = {
      {"javascript",
       {.set = "x = 1",
        .use = "x + 1",
        .big = "big = new Uint8Array(100e6); for (let i = 0; i < big.length; i += 8) big[i] = i * "
               "2654435761 >>> "
               "24; 0",
        .use_big = "big[4096]"}},
      {"python",
       {.set = "x = 1",
        .use = "x + 1",
        .big = "import random; big = random.randbytes(10**8)",
        .use_big = "big[4096]"}},
      {"perl",
       {.set = "$x = 1",
        .use = "$x + 1",
        .big = "$big = pack('V*', map { int(rand(2**32)) } 1 .. 1_000_000); $big x= 25; 0",
        .use_big = "ord(substr($big, 4096, 1))"}},
      {"ruby",
       {.set = "x = 1",
        .use = "x + 1",
        .big = "big = Random.bytes(10**8); 0",
        .use_big = "big.getbyte(4096)"}},
  };
  return all;
}

constexpr char kKey[] = "bench";

std::shared_ptr<interpreter::RuntimeWorker> open_worker(
    const std::shared_ptr<engine::Engine>& engine, const Folder& folder) {
  return must(interpreter::make_runtime_worker(engine, {.storage_folder = folder.path()}));
}

std::shared_ptr<protocol::Interpreter> interpreter_of(interpreter::RuntimeWorker& worker) {
  return must(worker.interpreter(kKey));
}

void create_context(interpreter::RuntimeWorker& worker, const char* id = "c") {
  must(interpreter_of(worker)->create(id, "/workspace"));
}

protocol::ExecuteResponse run(interpreter::RuntimeWorker& worker, const std::string& code,
                              std::string context = "c") {
  protocol::ExecuteArgs args;
  args.run.context = std::move(context);
  args.run.code = code;
  args.run.limits.wall_max = std::chrono::minutes(10);
  RunOutput ignored;
  auto response = must(interpreter_of(worker)->execute(std::move(args), ignored));
  if (response.outcome.error) fail(fmt::format("{}: {}", code, response.outcome.error->message));
  return response;
}

/// Bytes this process has handed to the kernel for files.
double bytes_written() {
  std::ifstream io("/proc/self/io");
  std::string key;
  double value = 0;
  while (io >> key >> value) {
    if (key == "wchar:") return value;
  }
  return 0;
}

void check_restored(const protocol::ExecuteResponse& response) {
  if (response.outcome.context->state != ContextState::kRestored) {
    fail("the context was not restored");
  }
}

/// A small cell in a context that is in memory: answered once what it changed is on disk.
void step(benchmark::State& state, const std::shared_ptr<engine::Engine>& engine,
          const Programs& code) {
  const Folder folder;
  const auto worker = open_worker(engine, folder);
  create_context(*worker);
  for (int i = 0; i < 20; ++i) run(*worker, code.set);
  const double before = bytes_written();
  double snapshot_ms = 0;
  double snapshot_bytes = 0;
  for (auto _ : state) {
    const auto response = run(*worker, code.set);
    const ContextRun& context = *response.outcome.context;
    snapshot_ms += context.snapshot_ms.value_or(0);
    snapshot_bytes += static_cast<double>(context.snapshot_bytes_written);
  }
  const auto runs = static_cast<double>(state.iterations());
  state.counters["snapshot_ms"] = snapshot_ms / runs;
  state.counters["snapshot_bytes"] = snapshot_bytes / runs;
  state.counters["file_bytes"] = (bytes_written() - before) / runs;
}

/// A context that is not in memory: two take turns where there is room for one. Each run is stored
/// too.
void restore_evicted(benchmark::State& state, const std::shared_ptr<engine::Engine>& engine,
                     const Programs& code) {
  const Folder folder;
  const auto worker = must(interpreter::make_runtime_worker(
      engine, {.storage_folder = folder.path(), .residency = {.instances_max = 1}}));
  create_context(*worker);
  create_context(*worker, "d");
  for (const char* context : {"c", "d"}) run(*worker, code.set, context);
  bool first = true;
  for (auto _ : state) {
    check_restored(run(*worker, code.use, first ? "c" : "d"));
    first = !first;
  }
}

/// From opening the data folder to the first answer of a context in it.
void restore(benchmark::State& state, const std::shared_ptr<engine::Engine>& engine,
             const std::string& define, const std::string& use) {
  const Folder folder;
  {
    const auto worker = open_worker(engine, folder);
    create_context(*worker);
    run(*worker, define);
  }
  for (auto _ : state) {
    auto worker = open_worker(engine, folder);
    check_restored(run(*worker, use));
    state.PauseTiming();  // closing is not part of it
    worker.reset();
    state.ResumeTiming();
  }
}

/// Forks and deletes the fork.
void fork(benchmark::State& state, const std::shared_ptr<engine::Engine>& engine,
          const std::string& define) {
  const Folder folder;
  const auto worker = open_worker(engine, folder);
  create_context(*worker);
  run(*worker, define);
  for (auto _ : state) {
    must(interpreter_of(*worker)->fork("c", "d", {}));
    state.PauseTiming();
    must(interpreter_of(*worker)->remove("d"));
    state.ResumeTiming();
  }
}

template <class Body>
void add(const std::string& name, const Body& body) {
  benchmark::RegisterBenchmark(name.c_str(), body)->Unit(benchmark::kMillisecond)->UseRealTime();
}

}  // namespace

void register_context_benchmarks(const std::string& language, const Load& load) {
  const auto found = programs().find(language);
  if (found == programs().end()) return;
  const Programs& code = found->second;
  add("step/" + language, [=](benchmark::State& s) { step(s, load(), code); });
  add("sandbox_step/" + language,
      [=](benchmark::State& s) { sandbox_step(s, load(), code.set, Durability::kCommit); });
  add("sandbox_step_relaxed/" + language,
      [=](benchmark::State& s) { sandbox_step(s, load(), code.set, Durability::kRelaxed); });
  add("sandbox_step_late/" + language,
      [=](benchmark::State& s) { sandbox_step_late(s, load(), code.set); });
  add("steps_at_once/" + language,
      [=](benchmark::State& s) { steps_at_once(s, load(), code.set); });
  add("step_under_load/" + language,
      [=](benchmark::State& s) { step_under_load(s, load(), code.set); });
  add("restore/" + language, [=](benchmark::State& s) { restore_evicted(s, load(), code); });
  add("reopen/" + language, [=](benchmark::State& s) { restore(s, load(), code.set, code.use); });
  add("reopen_100mb/" + language,
      [=](benchmark::State& s) { restore(s, load(), code.big, code.use_big); });
  add("fork/" + language, [=](benchmark::State& s) { fork(s, load(), code.set); });
  add("fork_100mb/" + language, [=](benchmark::State& s) { fork(s, load(), code.big); });
}

}  // namespace sw
