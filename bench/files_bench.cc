// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "files_bench.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "folder.h"
#include "must.h"
#include "sandbox_workers/host.h"

namespace sw {

namespace {

constexpr int kFilesPerFolder = 100;

/// A sandbox on disk with so many files, and a context of JavaScript in it.
class WithFiles {
 public:
  WithFiles(const std::shared_ptr<engine::Engine>& engine, std::int64_t files)
      : host_(must(Host::open({.data_folder = folder_.path() / "data", .engines = {engine}}))),
        sandbox_(host_.sandbox("bench")) {
    const auto given = folder_.path() / "given";
    std::filesystem::create_directories(given);
    for (std::int64_t i = 0; i < files; ++i) {
      const auto in = given / fmt::format("folder-{}", i / kFilesPerFolder);
      std::filesystem::create_directories(in);
      std::ofstream(in / fmt::format("file-{}", i)) << "content " << i;
    }
    must(sandbox_.files().copy_in(given, "data"));
    step("x = 1");
  }

  void step(const std::string& code) {
    Run run{.language = "javascript", .code = code};
    run.limits.wall_max = std::chrono::minutes(10);
    const Outcome outcome = must(sandbox_.run(run));
    if (outcome.error) fail(outcome.error->message);
  }
  void write(const std::string& text) { must(sandbox_.files().write("written", text)); }

 private:
  const Folder folder_;
  const Host host_;
  const Sandbox sandbox_;
};

}  // namespace

void register_files_benchmarks(const std::function<std::shared_ptr<engine::Engine>()>& load) {
  using Do = std::function<void(WithFiles&, std::int64_t)>;
  const auto add = [&](const std::string& name, const Do& act) {
    benchmark::RegisterBenchmark(name.c_str(),
                                 [=](benchmark::State& state) {
                                   WithFiles sandbox(load(), state.range(0));
                                   std::int64_t count = 0;
                                   for (auto _ : state) act(sandbox, ++count);
                                 })
        ->Unit(benchmark::kMillisecond)
        ->MeasureProcessCPUTime()  // that of the guest's thread, too
        ->UseRealTime()
        ->Arg(0)
        ->Arg(1000)
        ->Arg(4000)
        ->Arg(10000);
  };
  add("step_with_files", [](WithFiles& sandbox, std::int64_t) { sandbox.step("x = 1"); });
  add("writing_step_with_files", [](WithFiles& sandbox, std::int64_t count) {
    sandbox.step(fmt::format("fs.writeFileSync('/workspace/written', '{}')", count));
  });
  add("write_with_files",
      [](WithFiles& sandbox, std::int64_t count) { sandbox.write(std::to_string(count)); });
}

}  // namespace sw
