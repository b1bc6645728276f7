// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Languages compiled with checks: their runs end by a trap at the limit, whatever they catch.
// Python takes some minutes to compile so; it is tested by
//   build/release/bin/stopping_test --gtest_also_run_disabled_tests --gtest_filter='*Slow*'

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "bake/bake.h"
#include "engine/bakeable_language.h"
#include "engine/embedded_engine.h"
#include "engine/result_json.h"
#include "interpreter/test_worker.h"
#include "sandbox_workers/engine/all_languages.h"
#include "sandbox_workers/engine/machine.h"
#include "storage/memory/memory_storage.h"

namespace sw::engine {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Endless {
  const char* what;
  const char* code;
};

struct Programs {
  /// Each prints "before" and goes on for very long.
  std::vector<Endless> endless;
  /// Takes a second or two, and has the value 41.
  std::string work;
  std::string define;   ///< sets a variable to 41
  std::string defined;  ///< its value
};

const std::map<std::string, Programs>& programs() {
  static const std::map<std::string, Programs> all = {
      {"javascript",
       {.endless =
            {{"loop that catches",
              "console.log('before'); for (;;) try { for (;;); } catch {} finally { continue }"},
             {"sort",
              "const a = new Float64Array(3e5).map(Math.random); console.log('before'); for (;;) "
              "a.sort()"},
             {"regular expression", "console.log('before'); /^(a+)+$/.test('a'.repeat(100) + '!')"},
             {"fill",
              "const a = new Uint8Array(64e6); console.log('before'); for (;;) "
              "a.fill(1).reverse()"},
             {"sleep",
              "console.log('before'); await new Promise((done) => setTimeout(done, 3.6e6))"},
             {"jobs",
              "console.log('before'); (function again() { Promise.resolve().then(again) })()"}},
        .work = "let n = 0; for (let i = 0; i < 1e7; ++i) n ^= i; n === 0 || 1; 41",
        .define = "let n = 41",
        .defined = "n"}},
      {"perl",
       {.endless = {{"loop that catches", "print qq(before\\n); while (1) { eval { 1 while 1 } }"},
                    {"match", "print qq(before\\n); ('a' x 40) =~ /^(?:a?){40}(?:a|aa)+(??{'b'})/"},
                    {"sort",
                     "my @a = map { rand } 1 .. 50_000; print qq(before\\n); @a = sort { $b <=> $a "
                     "} @a while 1"},
                    {"destructor",
                     "print qq(before\\n); sub DESTROY { 1 while 1 } { my $x = bless [] } 1"},
                    {"sleep", "print qq(before\\n); sleep 3600"}},
        .work = "my $n = 0; $n ^= $_ for 1 .. 8_000_000; 41",
        .define = "my $n = 41",
        .defined = "$n"}},
      {"python",
       {.endless =
            {{"loop that catches",
              "print('before')\nwhile True:\n  try:\n    while True: pass\n  except BaseException: "
              "pass"},
             {"sum", "print('before'); sum(range(10**10))"},
             {"regular expression",
              "import re; print('before'); re.match('(a+)+$', 'a' * 100 + '!')"},
             {"sort",
              "a = list(range(300_000)); print('before')\nwhile True: a.sort(key=lambda n: -n)"},
             {"power", "print('before'); 7 ** (7 ** 9)"},
             {"sleep", "import time; print('before'); time.sleep(3600)"}},
        .work = "sum(range(20_000_000)) * 0 + 41",
        .define = "n = 41",
        .defined = "n"}},
      {"ruby",
       {.endless =
            {{"loop that catches", "puts 'before'\nbegin; loop { }; rescue Exception; retry; end"},
             {"ensure", "puts 'before'\nbegin; loop { }; ensure; loop { }; end"},
             {"square root", "puts 'before'\nInteger.sqrt(10 ** 2_000_000)"},
             {"sort",
              "a = Array.new(100_000) { rand }; puts 'before'\nloop { a.sort_by { |x| -x } }"},
             {"sleep", "puts 'before'\nsleep 3600"}},
        .work = "n = 0; 5_000_000.times { |i| n ^= i }; 41",
        .define = "n = 41",
        .defined = "n"}},
  };
  return all;
}

class WithChecks : public ::testing::TestWithParam<std::string> {
 protected:
  Result<Outcome> run(const std::string& code, const RunLimits& limits, RunEvents& output) {
    sw::Run request;
    request.code = code;
    request.limits = limits;
    Result<Outcome> outcome = Error{};
    EXPECT_TRUE(engine_->on_guest_thread([&] { outcome = engine_->run(request, output); }).ok());
    return outcome;
  }
  void expect_good_run() {
    RunOutput output;
    const auto outcome = run("41", {.wall_max = 600s}, output);
    ASSERT_TRUE(outcome.ok() && outcome->value);
    EXPECT_EQ(outcome->value->text, "41");
  }

  const Programs& code_ = programs().at(GetParam());
  std::unique_ptr<Machine> machine_ =
      Machine::create({.stop_means = wasm::StopMeans::kEpoch}).value();
  std::shared_ptr<EmbeddedEngine> engine_ =
      EmbeddedEngine::load(machine_->environment(), find_language(GetParam()).value(), no_progress)
          .value();
};

TEST_P(WithChecks, WhateverGoesOnForEverEndsAtItsLimitAndTheNextRunIsGood) {
  for (const Endless& endless : code_.endless) {
    SCOPED_TRACE(endless.what);
    RunOutput output;
    // What loops is given CPU time: a busy machine may leave it none for long, and it has to print
    // first.
    const bool sleeps = std::string_view(endless.what) == "sleep";
    const auto outcome = run(
        endless.code,
        sleeps ? RunLimits{.wall_max = 1s} : RunLimits{.wall_max = 600s, .cpu_max = 700ms}, output);
    ASSERT_TRUE(outcome.ok()) << outcome.error().message;
    EXPECT_EQ(ending_name(outcome->ending), ending_name(Ending::kTimeLimit));
    EXPECT_EQ(output.out, "before\n");
    EXPECT_GE(outcome->usage.wall, 700ms);
    EXPECT_LT(outcome->usage.cpu, 5s);
    EXPECT_EQ(outcome->usage.pages_written, 0u) << "the instance was kept";
    expect_good_run();
  }
}

TEST_P(WithChecks, ASessionEndsWithTheRunThatIsStopped) {
  const auto ran = engine_->on_guest_thread([&] {
    const auto session = engine_->start_session().value();
    RunOutput output;
    sw::Run request;
    request.code = "41";
    EXPECT_EQ(session->execute(request, output)->value->text, "41");
    request.code = code_.endless.front().code;
    request.limits.wall_max = 50ms;
    EXPECT_EQ(ending_name(session->execute(request, output)->ending),
              ending_name(Ending::kTimeLimit));
    EXPECT_TRUE(session->invalid());
  });
  ASSERT_TRUE(ran.ok());
}

TEST_P(WithChecks, AContextGoesOnFromWhatWasSaved) {
  storage::MemoryDisk disk;
  const auto storage = storage::open_memory_storage(disk);
  Workspace files{wasi::TreeLimits{}, 0};
  interpreter::TestWorker worker(engine_, *storage, files);
  worker.create("c");
  worker.run("c", code_.define);
  RunLimits limits;
  limits.wall_max = 50ms;
  const auto stopped = worker.run("c", code_.endless.front().code, limits);
  EXPECT_EQ(ending_name(stopped.outcome.ending), ending_name(Ending::kTimeLimit));
  const auto after = worker.run("c", code_.defined);
  ASSERT_TRUE(after.outcome.value);
  EXPECT_EQ(after.outcome.value->text, "41");
}

TEST_P(WithChecks, ARunWithinItsLimitsIsNotTouchedByTheEndsOfOthers) {
  std::jthread beside([&] {
    for (int i = 0; i < 2; ++i) {
      RunOutput output;
      const auto outcome = run(code_.work, {.wall_max = 600s}, output);
      ASSERT_TRUE(outcome.ok() && outcome->value)
          << (outcome.ok() && outcome->error ? outcome->error->message : "");
      EXPECT_EQ(outcome->value->text, "41");
      EXPECT_GT(outcome->usage.pages_written, 0u) << "the instance was not kept";
    }
  });
  for (int i = 0; i < 10; ++i) {
    RunOutput output;
    const auto outcome = run(code_.endless.front().code, {.wall_max = 50ms}, output);
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(ending_name(outcome->ending), ending_name(Ending::kTimeLimit));
  }
}

TEST_P(WithChecks, CancellingEndsARunAtOnce) {
  std::stop_source cancel;
  struct Canceller final : RunEvents {
    explicit Canceller(std::stop_source& to_stop) : source(to_stop) {}
    wasi::Errno write(wasi::Stream, BytesView) override {
      source.request_stop();
      return wasi::Errno::kSuccess;
    }
    std::stop_source& source;
  } output(cancel);
  sw::Run request;
  request.code = code_.endless.front().code;
  request.cancel = cancel.get_token();
  request.limits.wall_max = 600s;
  Result<Outcome> outcome = Error{};
  ASSERT_TRUE(engine_->on_guest_thread([&] { outcome = engine_->run(request, output); }).ok());
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_EQ(ending_name(outcome->ending), ending_name(Ending::kCancelled));
  expect_good_run();
}

TEST_P(WithChecks, TheVariantIsKeptApartAndTheOtherOneHasNoChecks) {
  const auto plain = Machine::create().value();
  const Manifest& manifest = engine_->manifest();
  const bake::ArtifactNames with = bake::artifact_names(machine_->wasm(), manifest).value();
  const bake::ArtifactNames without = bake::artifact_names(plain->wasm(), manifest).value();
  EXPECT_EQ(with.package, without.package);
  EXPECT_THAT(with.code, StartsWith("epoch-code-"));
  EXPECT_THAT(without.code, StartsWith("code-"));
  EXPECT_THAT(with.image, StartsWith("epoch-image-"));
  EXPECT_EQ(engine_->info().build, with.image);
  // What Wasmtime noted when it compiled the variant that is the default.
  const auto language = find_language(GetParam()).value();
  const auto baked =
      bake::bake(plain->wasm(), plain->environment().cache,
                 BakeableLanguage(plain->wasm(), plain->clocks(), *language), without, no_progress);
  ASSERT_TRUE(baked.ok()) << baked.error().message;
  const auto code = plain->environment().cache.find(without.code).value() / bake::kCodeFile;
  EXPECT_THAT(wasm::Module::load(machine_->wasm(), code).error().message,
              HasSubstr("without epoch interruption"));
}

const auto name_of = [](const auto& param_info) { return param_info.param; };
INSTANTIATE_TEST_SUITE_P(Languages, WithChecks, ::testing::Values("javascript", "perl", "ruby"),
                         name_of);
// To compile CPython with checks takes minutes; docs/adr/0017 has the command.
INSTANTIATE_TEST_SUITE_P(DISABLED_Slow, WithChecks, ::testing::Values("python"), name_of);

}  // namespace
}  // namespace sw::engine
