// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/ruby/ruby.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "engine/embedded_engine.h"
#include "sandbox_workers/engine/all_languages.h"
#include "sandbox_workers/engine/machine.h"

namespace sw::engine {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(Ruby, HasAManifestWithItsDriverEmbedded) {
  const auto language = find_language("ruby");
  ASSERT_TRUE(language.ok()) << language.error().message;
  EXPECT_FALSE((*language)->manifest().drivers.empty());
  EXPECT_TRUE(find_language("rb").ok());
}

/// Made once per process: an engine is slow to load.
struct RubyMachine {
  std::unique_ptr<Machine> machine = Machine::create().value();
  std::shared_ptr<EmbeddedEngine> ruby =
      EmbeddedEngine::load(machine->environment(), find_language("ruby").value(), no_progress)
          .value();

  static RubyMachine& get() {
    static RubyMachine the_machine;
    return the_machine;
  }
};

template <class Body>
void on_guest_thread(const Body& body) {
  ASSERT_TRUE(RubyMachine::get().ruby->on_guest_thread(body).ok());
}

/// A busy machine may leave a cell no time at all for longer than a short limit. So what has to get
/// somewhere before it is stopped is given CPU time.
RunLimits cpu_time(std::chrono::nanoseconds cpu_max, std::chrono::nanoseconds grace = 30s) {
  return {.wall_max = 600s, .cpu_max = cpu_max, .grace = grace};
}

struct Cells {
  std::unique_ptr<Session> session = RubyMachine::get().ruby->start_session().value();
  RunOutput sink;

  Outcome run(std::string code, const RunLimits& limits = {.wall_max = 600s}) {
    sw::Run request;
    request.code = std::move(code);
    request.limits = limits;
    auto outcome = session->execute(request, sink);
    if (outcome.ok()) return *std::move(outcome);
    ADD_FAILURE() << outcome.error().message;
    return Outcome();
  }
  std::string value(std::string code) {
    const Outcome outcome = run(std::move(code));
    if (outcome.error) return outcome.error->name + ": " + outcome.error->message;
    return outcome.value ? outcome.value->text : "";
  }
};

struct Endless {
  const char* name;
  const char* code;
  bool sleeps = false;
};

/// A sleeper uses no CPU time.
RunLimits limits_of(const Endless& endless) {
  return endless.sleeps ? RunLimits{.wall_max = 1s, .grace = 30s} : cpu_time(100ms);
}

class RubySoftStop : public ::testing::TestWithParam<Endless> {};

TEST_P(RubySoftStop, EndsTheCellAtItsDeadlineAndKeepsTheState) {
  on_guest_thread([] {
    Cells cells;
    cells.run("kept = [41]; nil");
    const Outcome outcome = cells.run(GetParam().code, limits_of(GetParam()));
    EXPECT_EQ(outcome.ending, Ending::kTimeLimit);
    ASSERT_FALSE(cells.session->invalid());
    EXPECT_EQ(cells.value("kept[0] + 1"), "42");
  });
}

INSTANTIATE_TEST_SUITE_P(
    Cells, RubySoftStop,
    ::testing::Values(Endless{"Loop", "loop {}"}, Endless{"While", "nil while true"},
                      Endless{"Sleep", "sleep", true}, Endless{"LongSleep", "sleep 3600", true},
                      Endless{"Times", "(1 << 60).times { |i| i }"},
                      Endless{"Match", "('a' * 60 + '!') =~ /\\A(a|a|b?)*\\1\\z/ while true"},
                      Endless{"Recursion", "def f(n) = n < 2 ? n : f(n - 1) + f(n - 2)\nf(100)"},
                      Endless{"Fiber", "Fiber.new { loop {} }.resume"},
                      Endless{"ManyFibers", "loop { Fiber.new { 1 }.resume }"},
                      Endless{"Enumerator", "e = (1..).each; loop { e.next }"},
                      Endless{"RescueStandardError", "loop { begin; loop {}; rescue; end }"},
                      Endless{"Inspect", "Class.new { def inspect = loop {} }.new"},
                      Endless{"Timeout", "Timeout.timeout(100) { loop {} }"}),
    [](const auto& param_info) { return param_info.param.name; });

TEST(Ruby, ACellThatNeverGivesInIsEndedByForce) {
  on_guest_thread([] {
    Cells cells;
    const Outcome outcome =
        cells.run("loop { begin; loop {}; rescue Exception; end }", cpu_time(100ms, 200ms));
    EXPECT_EQ(outcome.ending, Ending::kTimeLimit);
    EXPECT_TRUE(cells.session->invalid());
  });
}

TEST(Ruby, GarbageCollectionUnderStressFindsWhatIsInUse) {
  on_guest_thread([] {
    Cells cells;
    EXPECT_EQ(cells.value("GC.stress = true\n"
                          "a = (1..20).map { |i| \"s#{i}\" * 3 }.sort_by(&:size).group_by(&:size)\n"
                          "e = Enumerator.new { |y| 5.times { |i| y << \"#{i}\" } }\n"
                          "r = 5.times.map { e.next.to_i }\n"
                          "GC.stress = false\n"
                          "[a.values.flatten.size, r].inspect"),
              "\"[20, [0, 1, 2, 3, 4]]\"");
  });
}

TEST(Ruby, MemoryAfterBootIsSmall) {
  on_guest_thread([] {
    Cells cells;
    EXPECT_LE(cells.run("1").usage.memory_bytes, 32'000'000u);
  });
}

TEST(Ruby, AnAnswerNamesWhereABrokenCellIsBroken) {
  on_guest_thread([] {
    Cells cells;
    const Outcome outcome = cells.run("x = 1\n\ndef broken(\n");
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->name, "SyntaxError");
    EXPECT_THAT(outcome.error->message, HasSubstr("syntax error"));
    EXPECT_GE(outcome.error->line_number.value_or(0), 3);
  });
}

}  // namespace
}  // namespace sw::engine
