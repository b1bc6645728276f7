// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/perl/perl.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>

#include "engine/embedded_engine.h"
#include "sandbox_workers/engine/all_languages.h"
#include "sandbox_workers/engine/machine.h"

namespace sw::engine {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// Made once per process: an engine is slow to load.
struct PerlMachine {
  std::unique_ptr<Machine> machine = Machine::create().value();
  std::shared_ptr<EmbeddedEngine> perl =
      EmbeddedEngine::load(machine->environment(), find_language("perl").value(), no_progress)
          .value();

  static PerlMachine& get() {
    static PerlMachine the_machine;
    return the_machine;
  }
};

/// Runs its body on a thread that has room for a guest's stack.
template <class Body>
void on_guest_thread(const Body& body) {
  ASSERT_TRUE(PerlMachine::get().perl->on_guest_thread(body).ok());
}

/// A busy machine may leave a cell no time at all for longer than a short limit. So what has to get
/// somewhere before it is stopped is given CPU time.
RunLimits cpu_time(std::chrono::nanoseconds cpu_max, std::chrono::nanoseconds grace = 30s) {
  return {.wall_max = 600s, .cpu_max = cpu_max, .grace = grace};
}

struct Cells {
  std::unique_ptr<Session> session = PerlMachine::get().perl->start_session().value();
  RunOutput sink;

  Outcome run(std::string code, const RunLimits& limits = {.wall_max = 600s}) {
    sw::Run request;
    request.code = std::move(code);
    request.limits = limits;
    return execute(request);
  }
  Outcome execute(const sw::Run& request) {
    auto outcome = session->execute(request, sink);
    if (outcome.ok()) return *std::move(outcome);
    ADD_FAILURE() << outcome.error().message;
    return Outcome();
  }
  void end() {
    const auto outcome = session->execute({.context = "c", .ends_context = true}, sink);
    ASSERT_TRUE(outcome.ok()) << outcome.error().message;
    EXPECT_TRUE(session->invalid());
  }
  std::string value(std::string code) {
    const Outcome outcome = run(std::move(code));
    if (outcome.error) return outcome.error->name + ": " + outcome.error->message;
    return outcome.value ? outcome.value->text : "";
  }
};

// --- file-scoped variables

TEST(PerlLexicals, AreThereInTheNextCell) {
  on_guest_thread([] {
    Cells cells;
    EXPECT_EQ(cells.value("my $x = 41; sub inc { $x + 1 }"), "41");
    EXPECT_EQ(cells.value("inc()"), "42");
    EXPECT_EQ(cells.value("$x++; inc()"), "43");
  });
}

TEST(PerlLexicals, AreThereAfterManyCells) {
  on_guest_thread([] {
    Cells cells;
    cells.run(
        "my $x = 41; my @list = (1 .. 3); my %map = (k => 'v'); sub inc { $x + 1 } my $add = sub { "
        "$x += shift }");
    for (int i = 0; i < 300; ++i)
      cells.run(fmt::format("my $n{} = $x + {}; my $again = {};", i % 20, i, i));
    EXPECT_EQ(cells.value("inc()"), "42");
    EXPECT_EQ(cells.value("$add->(5); inc()"), "47");
    EXPECT_EQ(cells.value("push @list, 4; \"@list $map{k} $n19 $again\""), "1 2 3 4 v 340 299");
  });
}

TEST(PerlLexicals, TakeNoMoreMemoryInThousandsOfCells) {
  on_guest_thread([] {
    Cells cells;
    const auto step = [&](int i) {
      return cells.run(fmt::format("my $x = {}; my @y = ($x) x 100; my $f = sub {{ $x }};", i));
    };
    for (int i = 0; i < 500; ++i) step(i);
    const std::uint64_t before = step(0).usage.memory_bytes;
    for (int i = 0; i < 3000; ++i) step(i);
    EXPECT_LE(step(0).usage.memory_bytes, before + (1 << 20));
  });
}

TEST(PerlLexicals, KeepWhatTheyHadWhenTheirCellDied) {
  on_guest_thread([] {
    Cells cells;
    EXPECT_EQ(cells.run("my $before = 5; die 'boom'; my $after = 6").error->name, "PerlError");
    EXPECT_EQ(cells.value("$before"), "5");
    EXPECT_EQ(cells.run("my $left = 7; exit 3").exit_code, 3);
    EXPECT_EQ(cells.value("$left"), "7");
  });
}

TEST(PerlLexicals, OfBlocksAndLoopsStayThere) {
  on_guest_thread([] {
    Cells cells;
    cells.run(
        "our $inner = 'global'; { my $inner = 1 } for my $i (1 .. 2) { my $inner = 2 } if (1) { my "
        "$inner = 3 }");
    EXPECT_EQ(cells.value("$inner"), "global");
    EXPECT_EQ(cells.value("defined $i ? 'seen' : 'gone'"), "gone");
  });
}

TEST(PerlLexicals, CanBeDeclaredAnewWithoutChangingWhatRefersToTheOldOne) {
  on_guest_thread([] {
    Cells cells;
    cells.run("my $x = 1; sub old { $x } my $old = sub { eval '$x' };");
    cells.run("my $x = 2; sub new { $x }");
    EXPECT_EQ(cells.value("join ',', old(), new(), $x"), "1,2,2");
    EXPECT_EQ(cells.value("our $x = 3; join ',', old(), new(), $x, $main::x"), "1,2,3,3");
    EXPECT_EQ(cells.value("use strict; $x"), "3");
  });
}

TEST(PerlLexicals, AreSeenByStrictCellsAndByEvals) {
  on_guest_thread([] {
    Cells cells;
    cells.run("my ($x, @y, %z) = (1); my $naïve = 'ï'; state $s = 4;");
    EXPECT_EQ(
        cells.value(
            "use strict; use warnings FATAL => 'all'; @y = (2); $z{k} = 3; eval '\"$x@y$z{k}\"'"),
        "123");
    EXPECT_EQ(cells.value("use strict; $naïve"), "ï");
  });
}

TEST(PerlLexicals, AreDestroyedWhenTheyAreReplaced) {
  on_guest_thread([] {
    Cells cells;
    cells.run("sub DESTROY { print \"gone $_[0][0]\\n\" } my $x = bless [1];");
    cells.run("my $x = bless [2];");
    cells.run("1");
    EXPECT_EQ(cells.sink.out, "gone 1\n");
  });
}

// --- deadlines

struct Endless {
  const char* name;
  const char* code;
  bool sleeps = false;
};

/// A sleeper uses no CPU time.
RunLimits limits_of(const Endless& endless) {
  return endless.sleeps ? RunLimits{.wall_max = 1s, .grace = 30s} : cpu_time(100ms);
}

class PerlSoftStop : public ::testing::TestWithParam<Endless> {};

TEST_P(PerlSoftStop, EndsTheCellAtItsDeadlineAndKeepsTheState) {
  on_guest_thread([] {
    Cells cells;
    cells.run("my $kept = 41; our @list = (1);");
    const auto begin = std::chrono::steady_clock::now();
    const Outcome outcome = cells.run(GetParam().code, limits_of(GetParam()));
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(outcome.ending, Ending::kTimeLimit);
    ASSERT_TRUE(outcome.error.has_value());
    EXPECT_EQ(outcome.error->name, kExecutionLimitError);
    EXPECT_GE(took, 99ms);
    EXPECT_EQ(cells.sink.out, "before");
    ASSERT_FALSE(cells.session->invalid());
    EXPECT_EQ(cells.value("$kept + @list"), "42");
    EXPECT_EQ(cells.value("eval { die \"x\\n\" }; $@"), "x\n");
  });
}

INSTANTIATE_TEST_SUITE_P(
    Cells, PerlSoftStop,
    ::testing::Values(
        Endless{"Loop", "print 'before'; 1 while 1"},
        Endless{"EmptyBlock", "print 'before'; while (1) {}"},
        Endless{"ForLoop", "print 'before'; for (;;) { $n++ }"},
        Endless{"Calls", "print 'before'; sub f { $_[0] < 50 && f($_[0] + 1) } f(0) while 1"},
        Endless{"LoopThatCatchesErrors",
                "print 'before'; my $i; while (1) { eval { die 1 }; $i++ }"},
        Endless{"Goto", "print 'before'; again: $n++; goto again"},
        Endless{"Sort", "print 'before'; sort { 1 while 1 } 3, 2, 1"},
        Endless{"Map", "print 'before'; map { 1 while 1 } 1"},
        Endless{"Begin", "BEGIN { print 'before'; 1 while 1 }"},
        Endless{"Overload",
                "package O; use overload '\"\"' => sub { 1 while 1 }; print 'before'; bless []"},
        Endless{"Sleep", "print 'before'; sleep 3600", true},
        Endless{"Select", "print 'before'; select undef, undef, undef, 3600", true},
        Endless{"HiRes", "use Time::HiRes; print 'before'; Time::HiRes::usleep(3600e6)", true}),
    [](const auto& test) { return test.param.name; });

TEST(PerlDeadline, IsAnExceptionThatTheCodeSeesAndThatIsRepeated) {
  on_guest_thread([] {
    Cells cells;
    const Outcome outcome = cells.run(
        "my @seen; while (1) { eval { 1 while 1 }; push @seen, $@; last if @seen > 1 } die",
        cpu_time(50ms));
    EXPECT_EQ(outcome.ending, Ending::kTimeLimit);
    EXPECT_EQ(cells.value("scalar grep { /^Interrupted/ } @seen"), "2");
  });
}

TEST(PerlDeadline, EndsAGuestThatSwallowsTheInterruption) {
  on_guest_thread([] {
    Cells cells;
    const Outcome outcome =
        cells.run("print 'before'; while (1) { eval { 1 while 1 } }", cpu_time(50ms, 100ms));
    EXPECT_EQ(outcome.ending, Ending::kTimeLimit);
    EXPECT_TRUE(cells.session->invalid());
    EXPECT_EQ(cells.sink.out, "before");
  });
}

TEST(PerlDeadline, EndsALongMatchByForce) {
  on_guest_thread([] {
    Cells cells;
    const Outcome outcome = cells.run(
        "print 'before'; ('a' x 40) =~ /^(?:a?){40}(?:a|aa)+(??{'b'})/", cpu_time(50ms, 100ms));
    EXPECT_EQ(outcome.ending, Ending::kTimeLimit);
    EXPECT_EQ(cells.sink.out, "before");
  });
}

// --- alarms

TEST(PerlAlarm, RingsInASleepAndInALoop) {
  on_guest_thread([] {
    Cells cells;
    for (const char* wait : {"sleep 60", "select undef, undef, undef, 60", "1 while 1"}) {
      EXPECT_EQ(
          cells.value(fmt::format(
              "local $SIG{{ALRM}} = sub {{ die \"rang\\n\" }}; alarm 1; eval {{ {} }}; $@", wait)),
          "rang\n")
          << wait;
    }
  });
}

TEST(PerlAlarm, TellsWhatWasLeftOfTheOneBefore) {
  on_guest_thread([] {
    Cells cells;
    EXPECT_EQ(cells.value("join ',', alarm(100), alarm(50), alarm(0), alarm(0)"), "0,100,50,0");
  });
}

// --- memory

TEST(PerlMemory, LimitIsReportedAndTheSessionGoesOn) {
  on_guest_thread([] {
    for (const char* code : {"my @all; push @all, 'a' x 1_000_000 while 1",
                             "sub f { f(@_, 1) } f()", "my $s = 'a'; $s .= $s while 1",
                             "my %h; $h{$_} = $_ for 1 .. 1e9", "my $r; $r = [$r] while 1"}) {
      Cells cells;
      cells.run("our $kept = 5;");
      sw::Run request;
      request.code = code;
      request.limits.memory_bytes_max = 160 << 20;
      request.limits.wall_max = 600s;
      const Outcome outcome = cells.execute(request);
      EXPECT_EQ(outcome.ending, Ending::kMemoryLimit)
          << code << ": " << (outcome.error ? outcome.error->message : "");
      ASSERT_FALSE(cells.session->invalid()) << code;
      EXPECT_EQ(cells.value("$kept"), "5") << code;
    }
  });
}

// --- the environment's edges

TEST(PerlSession, GivesEachCellItsOwnEnvironmentAndInput) {
  on_guest_thread([] {
    Cells cells;
    sw::Run request;
    request.code =
        "my $first = <STDIN>; chomp $first; join '|', $first, map { \"$_=$ENV{$_}\" } sort keys "
        "%ENV";
    request.env = {{"A", "é"}, {"B", ""}};
    request.input = text_input("ü\nunread\n");
    EXPECT_EQ(cells.execute(request).value->text, "ü|A=é|B=");
    request.env = {{"C", "3"}};
    request.input = text_input("next\n");
    EXPECT_EQ(cells.execute(request).value->text, "next|C=3");
    EXPECT_EQ(cells.value("scalar(%ENV) . (defined(my $line = <STDIN>) ? 'more' : 'end')"), "0end");
  });
}

TEST(PerlSession, BeginsInTheFolderThatTheFirstCellIsGiven) {
  on_guest_thread([] {
    for (const auto& [wanted, begins] :
         {std::pair("/tmp", "/tmp"), std::pair("/nothing", "/workspace")}) {
      Cells cells;
      sw::Run request;
      request.code = "use Cwd; chdir '/' if getcwd() eq '/tmp/x'; getcwd()";
      request.cwd = wanted;
      EXPECT_EQ(cells.execute(request).value->text, begins);
      request.code = "mkdir '/tmp/x'; chdir '/tmp/x'; 1";
      EXPECT_EQ(cells.execute(request).cwd, "/tmp/x");
      request.code = "getcwd()";
      EXPECT_EQ(cells.execute(request).value->text, "/tmp/x");
    }
  });
}

TEST(PerlSession, StartsItsClockWithTheFirstCell) {
  on_guest_thread([] {
    Cells cells;
    EXPECT_EQ(cells.value("time - $^T < 100 ? 'now' : 'bake'"), "now");
  });
}

TEST(PerlSession, RunsEndBlocksOnceWhenItFinishes) {
  on_guest_thread([] {
    Cells cells;
    cells.run(
        "END { print \"end\\n\" } my $o = bless []; our $g = bless []; sub DESTROY { print "
        "\"destroy "
        "${^GLOBAL_PHASE}\\n\" }");
    cells.run("print \"cell\\n\"");
    cells.end();
    EXPECT_EQ(cells.sink.out, "cell\ndestroy RUN\nend\ndestroy DESTRUCT\n");
  });
}

TEST(PerlRun, ACrashInAnEndBlockIsACrashOfTheRun) {
  on_guest_thread([] {
    RunOutput sink;
    const Outcome outcome =
        PerlMachine::get()
            .perl->run({.code = "END { unpack('P4', pack('L', 0xfffffff0)) } 1"}, sink)
            .value();
    EXPECT_EQ(outcome.ending, Ending::kCrashed);
    EXPECT_TRUE(outcome.cut_off);
  });
}

TEST(PerlRandom, DiffersInEveryFreshInterpreter) {
  on_guest_thread([] {
    std::set<std::string> seen;
    for (int i = 0; i < 5; ++i) seen.insert(Cells().value("rand"));
    EXPECT_EQ(seen.size(), 5U);
  });
}

}  // namespace
}  // namespace sw::engine
