// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "calc.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "sandbox_workers/testing.h"

namespace calc {
namespace {

std::string evaluate(std::string code, std::vector<std::pair<std::string, std::string>> env = {}) {
  sw::engine::RunRequest request;
  request.code = std::move(code);
  request.env = std::move(env);
  sw::wasi::BufferSink output;
  const auto outcome = Calc().run(request, output);
  if (!outcome.ok()) return "failed: " + outcome.error().message;
  return outcome->error ? outcome->error->name + ": " + outcome->error->message : outcome->value->text;
}

TEST(Calc, KeepsTheEngineContract) {
  const sw::testing::ConformancePrograms programs = {
      .simple = {"1 + 2 * 3", "7"}, .error = "1 / 0", .env = sw::testing::EnvProgram{"env.NAME", "NAME"}};
  const auto kept = sw::testing::run_engine_conformance(std::make_shared<Calc>(), programs);
  EXPECT_TRUE(kept.ok()) << kept.error().message;
}

TEST(Calc, Computes) {
  EXPECT_EQ(evaluate("1 + 2 * 3"), "7");
  EXPECT_EQ(evaluate("(1 + 2) * 3"), "9");
  EXPECT_EQ(evaluate("10 - 4 - 3"), "3");
  EXPECT_EQ(evaluate(" --7 / 2\n"), "3");
  EXPECT_EQ(evaluate("-(2 + 3) * -2"), "10");
  EXPECT_EQ(evaluate("env.X + 1", {{"X", "41"}}), "42");
}

TEST(Calc, EveryProblemIsASyntaxError) {
  EXPECT_EQ(evaluate("1 / 0"), "SyntaxError: division by zero");
  EXPECT_EQ(evaluate("env.X"), "SyntaxError: there is no env.X");
  EXPECT_EQ(evaluate("env.X", {{"X", "many"}}), "SyntaxError: 'many' is no number");
  EXPECT_EQ(evaluate("(1"), "SyntaxError: ')' is missing");
  EXPECT_EQ(evaluate("1 2"), "SyntaxError: cannot go on at '2'");
  EXPECT_EQ(evaluate("1)"), "SyntaxError: cannot go on at ')'");
  EXPECT_EQ(evaluate(" "), "SyntaxError: '' is no number");
  EXPECT_EQ(evaluate("9223372036854775807 + 1"), "SyntaxError: the result is too large");
  EXPECT_EQ(evaluate("(0 - 9223372036854775807 - 1) / -1"), "SyntaxError: the result is too large");
  EXPECT_EQ(evaluate(std::string(100'000, '(')), "SyntaxError: nested too deeply");
}

}  // namespace
}  // namespace calc
