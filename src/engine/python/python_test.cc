// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/python/python.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "engine/embedded_engine.h"
#include "sandbox_workers/engine/all_languages.h"
#include "sandbox_workers/engine/machine.h"

namespace sw::engine {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(Python, HasAManifestWithItsDriverEmbedded) {
  const auto language = find_language("python");
  ASSERT_TRUE(language.ok()) << language.error().message;
  EXPECT_FALSE((*language)->manifest().drivers.empty());
}

/// Made once per process: an engine is slow to load.
struct PythonMachine {
  std::unique_ptr<Machine> machine = Machine::create().value();
  std::shared_ptr<EmbeddedEngine> python =
      EmbeddedEngine::load(machine->environment(), find_language("python").value(), no_progress)
          .value();

  static PythonMachine& get() {
    static PythonMachine the_machine;
    return the_machine;
  }
};

/// Runs its body on a thread that has room for a guest's stack.
template <class Body>
void on_guest_thread(const Body& body) {
  ASSERT_TRUE(PythonMachine::get().python->on_guest_thread(body).ok());
}

/// A busy machine may leave a cell no time at all for longer than a short limit. So what has to get
/// somewhere before it is stopped is given CPU time.
RunLimits cpu_time(std::chrono::nanoseconds cpu_max, std::chrono::nanoseconds grace = 30s) {
  return {.wall_max = 600s, .cpu_max = cpu_max, .grace = grace};
}

struct Cells {
  std::unique_ptr<Session> session = PythonMachine::get().python->start_session().value();
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

class SoftStop : public ::testing::TestWithParam<Endless> {};

TEST_P(SoftStop, EndsTheCellAtItsDeadlineAndKeepsTheState) {
  on_guest_thread([] {
    Cells cells;
    cells.run("import time, asyncio\nkept = [41]\nk = 0");
    const auto begin = std::chrono::steady_clock::now();
    const Outcome outcome = cells.run(GetParam().code, limits_of(GetParam()));
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(outcome.ending, Ending::kTimeLimit);
    ASSERT_TRUE(outcome.error.has_value());
    EXPECT_EQ(outcome.error->name, kExecutionLimitError);
    EXPECT_FALSE(outcome.error->traceback.empty());
    EXPECT_GE(took, 100ms);
    EXPECT_EQ(cells.sink.out, "before\n");
    ASSERT_FALSE(cells.session->invalid());
    EXPECT_EQ(cells.value("kept[0] + 1"), "42");
    EXPECT_EQ(cells.value("1/0"), "ZeroDivisionError: division by zero");
    EXPECT_EQ(cells.value("await asyncio.sleep(0.001, 'awake')"), "'awake'");
  });
}

INSTANTIATE_TEST_SUITE_P(
    Cells, SoftStop,
    ::testing::Values(
        Endless{"Loop", "print('before')\nwhile True: pass"},
        Endless{"LoopInAFunction", "print('before')\ndef f():\n  global k\n  while 1: k += 1\nf()"},
        Endless{"LoopThatCatchesErrors",
                "print('before')\nwhile True:\n  try: int('x')\n  except ValueError: pass"},
        Endless{"Recursion",
                "print('before')\ndef f(n):\n  for _ in range(9): n > 90 or f(n + 1)\nf(0)"},
        Endless{"Generator", "print('before')\nimport itertools\nfor _ in itertools.count(): pass"},
        Endless{"Sleep", "print('before')\ntime.sleep(3600)", true},
        Endless{"AsyncSleep", "print('before')\nawait asyncio.sleep(3600)", true},
        Endless{"AsyncRun", "print('before')\nasyncio.run(asyncio.sleep(3600))", true},
        Endless{"AsyncLoop", "print('before')\nwhile True: await asyncio.sleep(0)"},
        Endless{"Finalizer",
                "print('before')\ntry:\n  while True: pass\nfinally:\n  kept.append(1)"}),
    [](const auto& test) { return test.param.name; });

TEST(PythonDeadline, AfterwardsTheCodeThatWasInterruptedHasSeenIt) {
  on_guest_thread([] {
    Cells cells;
    cells.run(
        "seen = []\ntry:\n  while True: pass\nexcept KeyboardInterrupt as e: "
        "seen.append(type(e).__name__)\nraise "
        "LookupError",
        // Enough to get into the `try`, also with a sanitizer on a slow machine.
        cpu_time(500ms));
    EXPECT_EQ(cells.value("seen"), "[\"KeyboardInterrupt\"]");
  });
}

TEST(PythonDeadline, ACellThatSwallowsTheInterruptIsEndedByForce) {
  on_guest_thread([] {
    Cells cells;
    const Outcome outcome = cells.run(
        "print('before')\nwhile True:\n  try:\n    while True: pass\n  except BaseException: pass",
        cpu_time(50ms, 100ms));
    EXPECT_EQ(outcome.ending, Ending::kTimeLimit);
    EXPECT_EQ(cells.sink.out, "before\n");
    EXPECT_TRUE(cells.session->invalid());
  });
}

TEST(PythonDeadline, AnInterruptThatComesTooLateDoesNotHitTheNextCell) {
  on_guest_thread([] {
    Cells cells;
    for (int i = 0; i < 60; ++i) {
      cells.run("for _ in range(4000): pass",
                {.wall_max = std::chrono::microseconds(100 * i), .grace = 30s});
      ASSERT_FALSE(cells.session->invalid());
      const Outcome next = cells.run("sum(range(100))");
      ASSERT_FALSE(next.error.has_value()) << next.error->name;
      ASSERT_EQ(next.value->text, "4950");
    }
  });
}

TEST(PythonDeadline, ASleeperUsesNoCpuTime) {
  on_guest_thread([] {
    Cells cells;
    const Outcome outcome = cells.run("import time; time.sleep(0.5)");
    EXPECT_EQ(outcome.ending, Ending::kCompleted);
    EXPECT_GE(outcome.usage.wall, 490ms);
    EXPECT_LT(outcome.usage.cpu * 2, outcome.usage.wall);
  });
}

// --- runs that each are the first

TEST(PythonStateless, KeepsOneInterpreterAndShowsNothingOfTheRunBefore) {
  on_guest_thread([] {
    Engine& runner = *PythonMachine::get().python;
    for (int i = 0; i < 20; ++i) {
      RunOutput sink;
      sw::Run request;
      request.code =
          "import builtins, sys, os, json, random\n"
          "marks = [hasattr(builtins, 'x'), 'x' in globals(), hasattr(json, 'x'), "
          "os.path.exists('/tmp/x'),\n"
          "         os.path.exists('/workspace/x'), os.environ.get('X'), len(sys.path)]\n"
          "builtins.x = json.x = x = 1; open('/tmp/x', 'w').close(); open('/workspace/x', "
          "'w').close()\n"
          "os.environ['X'] = 'x'; sys.path.append('x'); os.chdir('/tmp')\n"
          "marks + [os.getcwd()]";
      const Outcome outcome = runner.run(request, sink).value();
      ASSERT_TRUE(outcome.value.has_value());
      EXPECT_EQ(outcome.value->text, "[false,false,false,false,false,null,2,\"/tmp\"]");
      EXPECT_GT(outcome.usage.pages_written, 0U) << "the instance was not kept";
    }
  });
}

TEST(PythonStateless, RandomNumbersDifferBetweenRuns) {
  on_guest_thread([] {
    Engine& runner = *PythonMachine::get().python;
    constexpr int kRuns = 5;
    for (const char* code :
         {"import random; random.random()", "import random; random.getrandbits(64)",
          "import uuid; uuid.uuid4()", "import uuid; uuid.uuid1()",
          "import secrets; secrets.token_hex()", "import tempfile; tempfile.mktemp()",
          "import os; os.urandom(8)", "import numpy as np; np.random.rand()",
          "import numpy; numpy.random.randint(10**9)", "from numpy.random import rand; rand()",
          "import numpy.random as r; r.default_rng().random()",
          "from numpy.random.mtrand import rand; rand()", "import random; random.gauss(0, 1)"}) {
      std::set<std::string> values;
      for (int i = 0; i < kRuns; ++i) {
        RunOutput sink;
        sw::Run request;
        request.code = code;
        const Outcome outcome = runner.run(request, sink).value();
        ASSERT_TRUE(outcome.value.has_value())
            << code << (outcome.error ? outcome.error->message : "");
        values.insert(outcome.value->text);
      }
      EXPECT_EQ(values.size(), kRuns) << code;
    }
  });
}

// --- streams

/// Remembers the order of what is printed over both streams.
class OrderSink final : public RunEvents {
 public:
  wasi::Errno write(wasi::Stream stream, BytesView bytes) override {
    order += stream == wasi::Stream::kStdout ? "<out>" : "<err>";
    order += as_text(bytes);
    return wasi::Errno::kSuccess;
  }
  std::string order;
};

TEST(PythonStreams, KeepTheirOrderAndPassInvalidUtf8On) {
  on_guest_thread([] {
    Cells cells;
    OrderSink sink;
    sw::Run request;
    request.code =
        "import sys\nsys.stdout.write('a')\nsys.stderr.write('b')\nsys.stdout.write('c')\n"
        "_ = sys.stdout.buffer.write(b'\\xff\\xfe')\nsys.stderr.write('\\ud800')\nimport os; _ = "
        "os.write(1, "
        "b'd')";
    ASSERT_TRUE(cells.session->execute(request, sink).ok());
    EXPECT_EQ(sink.order, "<out>a<err>b<out>c<out>\xff\xfe<err>\\ud800<out>d");
  });
}

// --- the end of a context

TEST(PythonContext, RunsExitHandlersWhenItEndsAndNotBefore) {
  on_guest_thread([] {
    Cells cells;
    cells.run(
        "import atexit; atexit.register(print, 'bye')\nf = open('/workspace/f', 'w'); "
        "f.write('left')");
    cells.run("print('second')");
    EXPECT_EQ(cells.sink.out, "second\n");
    cells.end();
    EXPECT_EQ(cells.sink.out, "second\nbye\n");
  });
}

TEST(PythonContext, AnErrorInAnExitHandlerIsShown) {
  on_guest_thread([] {
    Cells cells;
    cells.run("import atexit\ndef late(): 1/0\natexit.register(late)");
    cells.end();
    EXPECT_THAT(cells.sink.err, HasSubstr("ZeroDivisionError"));
  });
}

TEST(PythonContext, APendingTaskSeesItsCancellationAtTheEnd) {
  on_guest_thread([] {
    Cells cells;
    cells.run(
        "import asyncio\nasync def wait():\n  try: await asyncio.sleep(100)\n  finally: "
        "print('cleaned up')\n"
        "t = asyncio.create_task(wait())\nawait asyncio.sleep(0)");
    cells.end();
    EXPECT_EQ(cells.sink.out, "cleaned up\n");
  });
}

// --- limits

TEST(PythonLimits, RunningOutOfMemoryIsAMemoryLimitAndTheStateIsKept) {
  on_guest_thread([] {
    Cells cells;
    cells.run("ok = 5");
    sw::Run request;
    request.code = "x = []\nwhile True: x.append(bytearray(1 << 20))";
    request.limits.memory_bytes_max = std::uint64_t{256} << 20;
    const Outcome outcome = cells.session->execute(request, cells.sink).value();
    EXPECT_EQ(outcome.ending, Ending::kMemoryLimit);
    EXPECT_EQ(cells.value("x.clear(); ok"), "5");
  });
}

TEST(PythonLimits, AValueThatIsTooLargeIsALimitAtOnce) {
  on_guest_thread([] {
    Cells cells;
    EXPECT_EQ(cells.run("class Big:\n  def __repr__(self): return 'b' * 50_000_000\nBig()").ending,
              Ending::kResultLimit);
    EXPECT_EQ(cells.value("'alive'"), "'alive'");
  });
}

TEST(PythonLimits, DeepStructuresAreFreedWithoutOverflow) {
  on_guest_thread([] {
    Cells cells;
    EXPECT_EQ(cells.value("a = []\nfor _ in range(200_000): a = [a]\ndel a\n'freed'"), "'freed'");
  });
}

// --- answers that do not come from the driver

TEST(PythonAnswers, CodeThatAnswersInTheDriversPlaceChangesOnlyItsOwnResult) {
  on_guest_thread([] {
    Cells cells;
    EXPECT_EQ(cells.value("import _host; _host.call(b'nonsense'); 7"), "7");
    EXPECT_EQ(cells.value("1 + 1"), "2");
  });
}

}  // namespace
}  // namespace sw::engine
