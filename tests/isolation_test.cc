// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Fresh runs never see one another, although they share one instance whose memory is put back.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "engine/embedded_engine.h"
#include "engine/result_json.h"
#include "sandbox_workers/engine/all_languages.h"
#include "sandbox_workers/engine/machine.h"
#include "sandbox_workers/wasm/guest_thread.h"
#include "trace_probes.h"

namespace sw::engine {
namespace {

/// Runs that end in bad ways, each followed by a probe.
const std::map<std::string, std::vector<std::string>>& bad_endings() {
  static const std::map<std::string, std::vector<std::string>> all = {
      {"python",
       {"import os; os._exit(3)", "raise SystemExit(2)", "1/0", "x = bytearray(300 << 20); 1",
        "import sys; sys.stdout.close()"}},
      {"javascript",
       {"process.exit(3)", "throw null", "null.x", "Promise.reject(new Error('x'))",
        "function f() { f() } f()", "new Uint8Array(100e6).fill(1).length"}},
      {"perl",
       {"exit 3", "die { code => 1 }", "1 / 0", "my $x = 'x' x (300 << 20); 1",
        "close STDOUT; undef *STDERR", "kill TERM => $$", "if (", "END { print 'end' } 1",
        "use Socket;"}},
      {"ruby",
       {"exit!(3)", "raise SystemExit", "1/0", "x = 'x' * (300 << 20); 1", "$stdout.close",
        "def f = [1].each { f }; f", "Fiber.new { exit 2 }.resume"}},
  };
  return all;
}

/// What a process has and must give back.
struct Held {
  long descriptors = 0;
  long threads = 0;
  long resident_mb = 0;

  static Held now() {
    const auto count = [](const char* folder) {
      return std::distance(std::filesystem::directory_iterator(folder),
                           std::filesystem::directory_iterator());
    };
    std::ifstream statm("/proc/self/statm");
    long pages = 0;
    long resident = 0;
    statm >> pages >> resident;
    return {.descriptors = count("/proc/self/fd"),
            .threads = count("/proc/self/task"),
            .resident_mb = resident / 256};
  }
};

class Isolation : public ::testing::TestWithParam<std::string> {};

TEST_P(Isolation, AThousandFreshRunsNeverSeeOneAnother) {
  const auto machine = Machine::create().value();
  const auto engine = machine->load(find_language(GetParam()).value()).value();
  const std::vector<std::string>& endings = bad_endings().at(GetParam());
  const auto ran = engine->on_guest_thread([&] {
    std::uint64_t kept = 0;
    Held early;
    for (std::size_t i = 0; i < 1000; ++i) {
      RunOutput sink;
      sw::Run request;
      if (i == 100) early = Held::now();
      if (i % 10 == 9) {
        request.code = endings[i / 10 % endings.size()];
        ASSERT_TRUE(engine->run(request, sink).ok()) << request.code;
        continue;
      }
      request.code = trace_probe(GetParam());
      const auto outcome = engine->run(request, sink);
      ASSERT_TRUE(outcome.ok()) << outcome.error().message;
      ASSERT_TRUE(outcome->value) << (outcome->error ? outcome->error->message : "no value")
                                  << " in run " << i;
      ASSERT_EQ(outcome->value->text, "'clean'") << "in run " << i;
      ASSERT_EQ(sink.out, "unfinished");
      kept += outcome->usage.pages_written != 0 ? 1U : 0U;
    }
    // Most of these runs leave the instance in a state in which it is kept; that is the case to be
    // tested.
    EXPECT_GT(kept, 800u);
    const Held late = Held::now();
    EXPECT_LE(late.descriptors, early.descriptors + 2);
    EXPECT_EQ(late.threads, early.threads);
    EXPECT_LT(late.resident_mb, early.resident_mb + 200);
  });
  ASSERT_TRUE(ran.ok());
}

INSTANTIATE_TEST_SUITE_P(Languages, Isolation,
                         ::testing::Values("javascript", "perl", "python", "ruby"),
                         [](const auto& param_info) { return param_info.param; });

// --- runs that end badly

struct BadRun {
  std::string code;
  Ending ending;
  /// The time it may take, with next to none between the request to stop and force. Zero: enough.
  std::chrono::milliseconds wall_max{};
};

struct BadRuns {
  std::vector<BadRun> runs;
  /// Has the value 'NUMBER': how often it was run in its session.
  std::string count;
  /// A little more than the image has.
  std::uint64_t memory_bytes_max;
};

/// Each ends its interpreter, or takes all the memory there is: by a trap, by an exit, by a limit.
const std::map<std::string, BadRuns>& bad_runs() {
  using namespace std::chrono_literals;
  static const std::map<std::string, BadRuns> all = {
      {"javascript",
       {.runs =
            {{"process.exit(3)", Ending::kExited},
             {"let all = []; for (;;) all.push(new Uint8Array(1e6))", Ending::kMemoryLimit},
             // The engine has no way to trap but the host's: the next touch of the memory is
             // one.
             {"const a = new Float64Array(1e5).map(Math.sin); for (;;) a.toSorted()",
              Ending::kTimeLimit, 1ms},
             {"setTimeout(() => process.exit(7), 0); await new Promise(() => {})", Ending::kExited},
             {"let s = 'x'; for (;;) s = [s, s].join('y')", Ending::kMemoryLimit},
             {"for (;;) try { for (;;); } catch {} finally { continue }", Ending::kTimeLimit, 1ms}},
        .count = "globalThis.n = (globalThis.n ?? 0) + 1; `${n}`",
        .memory_bytes_max = std::uint64_t{16} << 20}},
      {"perl",
       {.runs = {{"CORE::dump()", Ending::kCrashed},
                 {"exit 3", Ending::kExited},
                 {"my @all; push @all, 'x' x 1_000_000 while 1", Ending::kMemoryLimit},
                 {"sort { CORE::dump() } 2, 1", Ending::kCrashed},
                 {"use POSIX; POSIX::_exit(4)", Ending::kExited},
                 {"for (;;) { eval { 1 while 1 } }", Ending::kTimeLimit, 1ms}},
        .count = "our $n; ++$n; \"'$n'\"",
        .memory_bytes_max = std::uint64_t{48} << 20}},
      {"python",
       {.runs = {{"import os; os.abort()", Ending::kExited},
                 {"import os; os._exit(3)", Ending::kExited},
                 {"kept = []\nwhile True: kept.append(bytes(1_000_000))", Ending::kMemoryLimit},
                 {"x = iter([])\nfor _ in range(400_000): x = map(int, x)\ndel x",
                  Ending::kCrashed},
                 {"raise SystemExit(4)", Ending::kExited},
                 {"sum(range(10**10))", Ending::kTimeLimit, 1ms}},
        .count = "n = globals().get('n', 0) + 1; str(n)",
        .memory_bytes_max = std::uint64_t{160} << 20}},
      {"ruby",
       {.runs = {{"deep = []; 100_000.times { deep = [deep] }; JSON.generate(deep, max_nesting: 0)",
                  Ending::kCrashed},
                 {"exit 3", Ending::kExited},
                 {"kept = []; loop { kept << 'x' * 1_000_000 }", Ending::kMemoryLimit},
                 {"begin; loop { }; ensure; loop { }; end", Ending::kTimeLimit, 1ms},
                 {"exit! 4", Ending::kExited},
                 {"Integer.sqrt(10 ** 2_000_000)", Ending::kTimeLimit, 1ms}},
        .count = "$n = $n.to_i + 1; text = Object.new; text.define_singleton_method(:inspect) { "
                 "\"'#{$n}'\" }; text",
        .memory_bytes_max = std::uint64_t{64} << 20}},
  };
  return all;
}

class BadRunsTest : public ::testing::TestWithParam<std::string> {
 protected:
  /// Runs `code` fresh, or in `session` if there is one.
  void expect_value(const std::string& code, const std::string& value, Session* session = nullptr) {
    RunOutput sink;
    sw::Run request;
    request.code = code;
    const auto outcome =
        session != nullptr ? session->execute(request, sink) : engine_->run(request, sink);
    ASSERT_TRUE(outcome.ok()) << outcome.error().message;
    ASSERT_TRUE(outcome->value) << (outcome->error ? outcome->error->message : "no value");
    ASSERT_EQ(outcome->value->text, value);
  }

  void expect_ending(const BadRun& run) {
    RunOutput sink;
    sw::Run request;
    request.code = run.code;
    if (run.ending == Ending::kMemoryLimit) request.limits.memory_bytes_max = bad_.memory_bytes_max;
    if (run.wall_max.count() != 0) {
      request.limits.wall_max = run.wall_max;
      request.limits.grace = std::chrono::milliseconds(1);
    }
    const auto outcome = engine_->run(request, sink);
    ASSERT_TRUE(outcome.ok()) << outcome.error().message;
    ASSERT_EQ(ending_name(outcome->ending), ending_name(run.ending))
        << (outcome->error ? outcome->error->message : "no error");
  }

  const BadRuns& bad_ = bad_runs().at(GetParam());
  std::unique_ptr<Machine> machine_ = Machine::create().value();
  std::shared_ptr<EmbeddedEngine> engine_ =
      EmbeddedEngine::load(machine_->environment(), find_language(GetParam()).value(), no_progress)
          .value();
};

TEST_P(BadRunsTest, FiveHundredOfThemAffectNeitherTheRunsBetweenNorASessionBeside) {
  const std::string& probe = trace_probe(GetParam());
  const auto ran = engine_->on_guest_thread([&] {
    const auto beside = engine_->start_session().value();
    for (std::size_t i = 0; i < 500; ++i) {
      const BadRun& run = bad_.runs[i % bad_.runs.size()];
      SCOPED_TRACE(fmt::format("run {}, {}", i, run.code));
      expect_ending(run);
      expect_value(probe, "'clean'");
      expect_value(bad_.count, fmt::format("'{}'", i + 1), beside.get());
      if (HasFatalFailure()) return;
    }
  });
  ASSERT_TRUE(ran.ok());
}

INSTANTIATE_TEST_SUITE_P(Languages, BadRunsTest,
                         ::testing::Values("javascript", "perl", "python", "ruby"),
                         [](const auto& param_info) { return param_info.param; });

}  // namespace
}  // namespace sw::engine
