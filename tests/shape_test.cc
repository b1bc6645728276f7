// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What every language does alike and a case file cannot say: docs/languages.md names these tests.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/embedded_engine.h"
#include "engine/result_json.h"
#include "sandbox_workers/engine/all_languages.h"
#include "sandbox_workers/engine/machine.h"

namespace sw::engine {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Programs {
  std::string alternate;  ///< prints a, B, c, D on lines of their own, the capitals to stderr
  std::string print;      ///< prints 1,000 lines of "123456789"; the value is 7
  std::string long_text;  ///< the value is a text of two million characters
  std::string random;     ///< the value is a random number
  std::string loop;       ///< runs for ever
  std::string sleep;      ///< sleeps for 0.3 s; the value is 7
  std::string swallow;    ///< runs for ever, and catches what asks it to stop
};

const std::map<std::string, Programs>& programs() {
  static const std::map<std::string, Programs> all = {
      {"javascript",
       {.alternate = "console.log('a'); console.error('B'); console.log('c'); console.error('D')",
        .print = "for (let i = 0; i < 1000; ++i) console.log('123456789'); 7",
        .long_text = "'x'.repeat(2e6)",
        .random = "Math.random()",
        .loop = "for (;;);",
        .sleep = "await new Promise((done) => setTimeout(done, 300)); 7",
        .swallow = "const a = new Uint8Array(64e6); for (;;) a.fill(1).sort()"}},
      {"perl",
       {.alternate = "print qq(a\\n); print STDERR qq(B\\n); print qq(c\\n); warn qq(D\\n); undef",
        .print = "print qq(123456789\\n) for 1 .. 1000; 7",
        .long_text = "'x' x 2_000_000",
        .random = "rand",
        .loop = "1 while 1",
        .sleep = "select undef, undef, undef, 0.3; 7",
        .swallow = "while (1) { eval { 1 while 1 } }"}},
      {"python",
       {.alternate = "import sys; print('a'); print('B', file=sys.stderr); print('c'); print('D', "
                     "file=sys.stderr)",
        .print = "for _ in range(1000): print('123456789')\n7",
        .long_text = "'x' * 2_000_000",
        .random = "import random; random.random()",
        .loop = "while True: pass",
        .sleep = "import time; time.sleep(0.3); 7",
        .swallow = "while True:\n  try:\n    while True: pass\n  except BaseException: pass"}},
      {"ruby",
       {.alternate = "puts 'a'; $stderr.puts 'B'; print 'c', 10.chr; warn 'D'",
        .print = "1000.times { puts '123456789' }; 7",
        .long_text = "'x' * 2_000_000",
        .random = "rand",
        .loop = "loop { }",
        .sleep = "sleep 0.3; 7",
        .swallow = "begin; loop { }; rescue Exception; retry; end"}},
  };
  return all;
}

/// Keeps every piece as it comes, with its stream.
struct PieceSink final : RunEvents {
  wasi::Errno write(wasi::Stream stream, BytesView bytes) override {
    std::string& to =
        pieces.empty() || streams.back() != stream ? pieces.emplace_back() : pieces.back();
    streams.push_back(stream);
    to += as_text(bytes);
    return wasi::Errno::kSuccess;
  }
  std::vector<std::string> pieces;
  std::vector<wasi::Stream> streams;
};

class Shape : public ::testing::TestWithParam<std::string> {
 protected:
  Outcome run(const std::string& code, RunEvents& sink, const RunLimits& limits = {}) {
    sw::Run request;
    request.code = code;
    request.limits = limits;
    Result<Outcome> outcome = Error{};
    EXPECT_TRUE(engine_->on_guest_thread([&] { outcome = engine_->run(request, sink); }).ok());
    if (outcome.ok()) return *std::move(outcome);
    ADD_FAILURE() << outcome.error().message;
    return {};
  }
  Outcome run(const std::string& code, const RunLimits& limits = {}) {
    RunOutput sink;
    return run(code, sink, limits);
  }
  static std::string value_of(const Outcome& outcome) {
    if (outcome.error) return outcome.error->name + ": " + outcome.error->message;
    return outcome.value ? outcome.value->text : "no value";
  }

  const Programs& code_ = programs().at(GetParam());
  std::unique_ptr<Machine> machine_ = Machine::create().value();
  std::shared_ptr<EmbeddedEngine> engine_ =
      EmbeddedEngine::load(machine_->environment(), find_language(GetParam()).value(), no_progress)
          .value();
};

TEST_P(Shape, TheTwoStreamsKeepTheirOrder) {
  PieceSink sink;
  run(code_.alternate, sink);
  EXPECT_THAT(sink.pieces, ElementsAre("a\n", "B\n", "c\n", "D\n"));
  EXPECT_EQ(sink.streams.front(), wasi::Stream::kStdout);
}

TEST_P(Shape, OutputBeyondItsLimitIsDroppedAndTheProgramGoesOn) {
  RunLimits limits;
  limits.output_bytes_max = 1024;
  RunOutput sink;
  const Outcome outcome = run(code_.print, sink, limits);
  EXPECT_EQ(value_of(outcome), "7");
  EXPECT_EQ(sink.out.size(), 1024u);
  EXPECT_TRUE(outcome.usage.output_truncated);
  limits.output_bytes_max = 10'000;
  EXPECT_FALSE(run(code_.print, limits).usage.output_truncated);
}

TEST_P(Shape, AValueBeyondItsLimitIsALimitThatIsMet) {
  const Outcome outcome = run(code_.long_text);
  EXPECT_EQ(ending_name(outcome.ending), ending_name(Ending::kResultLimit));
  EXPECT_THAT(value_of(outcome), HasSubstr("ExecutionLimitError"));
  RunLimits limits;
  limits.result_bytes_max = 3'000'000;
  EXPECT_GE(value_of(run(code_.long_text, limits)).size(), 2'000'000u);
}

TEST_P(Shape, EveryFreshRunDrawsItsOwnRandomNumbers) {
  std::set<std::string> seen;
  for (int i = 0; i < 20; ++i) seen.insert(value_of(run(code_.random)));
  EXPECT_EQ(seen.size(), 20u);
}

TEST_P(Shape, ALimitOfCpuTimeEndsALoopAndNoSleep) {
  RunLimits limits;
  limits.cpu_max = 200ms;
  limits.wall_max = 600s;
  const Outcome looped = run(code_.loop, limits);
  EXPECT_EQ(ending_name(looped.ending), ending_name(Ending::kTimeLimit));
  EXPECT_THAT(value_of(looped), HasSubstr("CPU"));
  EXPECT_EQ(value_of(run(code_.sleep, limits)), "7");
}

TEST_P(Shape, WhatCatchesTheStopIsEndedByForceAndTheNextRunIsGood) {
  RunLimits limits;
  limits.cpu_max = 500ms;  // so that it is in its loop, however busy the machine is
  limits.wall_max = 600s;
  limits.grace = 50ms;
  const Outcome outcome = run(code_.swallow, limits);
  EXPECT_EQ(ending_name(outcome.ending), ending_name(Ending::kTimeLimit));
  EXPECT_EQ(outcome.usage.pages_written, 0u) << "the instance was kept";
  EXPECT_TRUE(outcome.cut_off);
  EXPECT_EQ(value_of(run(code_.sleep)), "7");
}

INSTANTIATE_TEST_SUITE_P(Languages, Shape,
                         ::testing::Values("javascript", "perl", "python", "ruby"),
                         [](const auto& param_info) { return param_info.param; });

}  // namespace
}  // namespace sw::engine
