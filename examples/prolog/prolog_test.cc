// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "prolog.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sandbox_workers/testing.h"

namespace prolog {
namespace {

using sw::Ending;
using sw::Outcome;

/// The engine, loaded once: the first time on a machine it is fetched, compiled and booted.
class PrologTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    machine_ = sw::engine::Machine::create().value();
    auto engine = machine_->load(make_language().value());
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    engine_ = *std::move(engine);
  }
  static void TearDownTestSuite() {
    engine_.reset();
    machine_.reset();
  }

  /// The outcomes of cells that are run one after another in one session.
  static std::vector<Outcome> cells(const std::vector<std::string>& codes) {
    std::vector<Outcome> outcomes;
    const auto ran = engine_->on_guest_thread([&] {
      const auto session = engine_->boot().value();
      for (const std::string& code : codes) {
        sw::Run request;
        request.code = code;
        request.limits.wall_max = std::chrono::milliseconds(500);
        outcomes.push_back(session->execute(request, output_).value());
      }
    });
    EXPECT_TRUE(ran.ok());
    return outcomes;
  }
  static Outcome run(const sw::Run& request) {
    Outcome outcome;
    EXPECT_TRUE(
        engine_->on_guest_thread([&] { outcome = engine_->run(request, output_).value(); }).ok());
    return outcome;
  }
  /// The last one as text: the value, or the error's name.
  static std::string last_of(const std::vector<std::string>& codes) {
    const Outcome last = cells(codes).back();
    if (last.error) return last.error->name;
    return last.value ? last.value->text : "(none)";
  }

  static inline std::unique_ptr<sw::engine::Machine> machine_;
  static inline std::shared_ptr<sw::engine::Engine> engine_;
  static inline sw::RunOutput output_;
};

TEST_F(PrologTest, KeepsTheEngineContract) {
  const sw::testing::ConformancePrograms programs = {
      .simple = {"?- X is 1 + 1.", "X = 2"},
      .error = "?- throw(broken).",
      .stateful =
          sw::testing::DefineAndUse{"counter(1).", "?- counter(N), X is N + 1.", "N = 1, X = 2"},
      .endless = "?- repeat, fail.",
      .env =
          sw::testing::EnvProgram{
              .code = "?- getenv('NAME', X).", .name = "NAME", .expect_text = "X = '4711'"},
      .cwd =
          sw::testing::CwdProgram{
              "?- make_directory_path('/workspace/conformance'), chdir('/workspace/conformance').",
              "?- working_directory(D, D).", "D = \"/workspace/conformance/\""},
      .files =
          sw::testing::FilesProgram{
              .write =
                  "?- open('/workspace/conformance.txt', write, S), write(S, content), close(S).",
              .fail = "?- open('/workspace/conformance.txt', write, S), write(S, failed), "
                      "close(S), throw(broken)."},
      .open_file =
          sw::testing::DefineAndUse{"?- open('/workspace/open.txt', write, _, [alias(log)]).",
                                    "?- write(log, x).", "true"},
      .random = "?- random(X)."};
  const auto kept = sw::testing::run_engine_conformance(engine_, programs);
  EXPECT_TRUE(kept.ok()) << kept.error().message;
}

TEST_F(PrologTest, ACellIsClausesAndQueries) {
  EXPECT_EQ(last_of({"p(1). p(2). ?- p(X), X > 1."}), "X = 2");
  EXPECT_EQ(last_of({"p(1).", "p(2).", "?- findall(X, p(X), L)."}), "L = [1,2]");
  EXPECT_EQ(last_of({"p(1)."}), "(none)");
  EXPECT_EQ(last_of({"?- fail."}), "false");
  EXPECT_EQ(last_of({"?- true."}), "true");
  EXPECT_EQ(last_of({"s --> [hello], n. n --> [world].", "?- phrase(s, [hello, world])."}), "true");
  EXPECT_EQ(last_of({"?- X = \"text\", Y = 'it''s', Z = f(A, B, A)."}),
            "X = \"text\", Y = 'it\\'s', Z = f(A,B,A)");
}

TEST_F(PrologTest, ProblemsAreErrorsWithTheirKindAsName) {
  EXPECT_EQ(last_of({"?- X is foo + 1."}), "type_error");
  EXPECT_EQ(last_of({"?- nothing."}), "existence_error");
  EXPECT_EQ(last_of({"?- X = ."}), "syntax_error");
  EXPECT_EQ(last_of({"?- throw(mine)."}), "Error");
}

TEST_F(PrologTest, HaltGivesAnExitCode) {
  const Outcome outcome = cells({"?- halt(3)."}).back();
  EXPECT_EQ(outcome.ending, Ending::kExited);
  EXPECT_EQ(outcome.exit_code, 3);
}

TEST_F(PrologTest, EndsAQueryAtItsLimitAndKeepsTheProgram) {
  EXPECT_EQ(last_of({"p(1).", "?- repeat, fail.", "?- p(X)."}), "X = 1");
}

TEST_F(PrologTest, BeginsInTheFolderOfTheContext) {
  sw::Run request;
  request.code = "?- working_directory(D, D).";
  request.cwd = "/tmp";
  EXPECT_EQ(run(request).cwd, "/tmp");
  request.cwd = "/nowhere";
  EXPECT_EQ(run(request).cwd, "/workspace");
}

TEST_F(PrologTest, PrintsWhatIsWritten) {
  cells({"?- write(hello), nl."});
  EXPECT_EQ(output_.out, "hello\n");
}

}  // namespace
}  // namespace prolog
