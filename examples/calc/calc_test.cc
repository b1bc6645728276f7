// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "calc.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "sandbox_workers/testing.h"
#include "worker.h"

namespace calc {
namespace {

std::string evaluate(std::string code, std::vector<std::pair<std::string, std::string>> env = {}) {
  sw::Run request;
  request.code = std::move(code);
  request.env = std::move(env);
  sw::RunOutput output;
  const auto outcome = Calc().run(request, output);
  if (!outcome.ok()) return "failed: " + outcome.error().message;
  return outcome->error ? outcome->error->name + ": " + outcome->error->message
                        : outcome->value->text;
}

TEST(Calc, KeepsTheEngineContract) {
  const sw::testing::ConformancePrograms programs = {
      .simple = {"1 + 2 * 3", "7"},
      .error = "1 / 0",
      .env = sw::testing::EnvProgram{"env.NAME", "NAME"}};
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
  EXPECT_EQ(evaluate("env.X"), "SyntaxError: undefined: env.X");
  EXPECT_EQ(evaluate("env.X", {{"X", "many"}}), "SyntaxError: 'many' is not a number");
  EXPECT_EQ(evaluate("(1"), "SyntaxError: ')' is missing");
  EXPECT_EQ(evaluate("1 2"), "SyntaxError: unexpected '2'");
  EXPECT_EQ(evaluate("1)"), "SyntaxError: unexpected ')'");
  EXPECT_EQ(evaluate(" "), "SyntaxError: '' is not a number");
  EXPECT_EQ(evaluate("9223372036854775807 + 1"), "SyntaxError: the result is too large");
  EXPECT_EQ(evaluate("(0 - 9223372036854775807 - 1) / -1"), "SyntaxError: the result is too large");
  EXPECT_EQ(evaluate(std::string(100'000, '(')), "SyntaxError: nested too deeply");
}

struct WorkerTest : ::testing::Test {
  const std::shared_ptr<sw::interpreter::RuntimeWorker> worker = make_worker().value();

  sw::protocol::Response fetch(std::string method, std::string path, std::string body = {}) {
    return worker->fetch({.method = std::move(method),
                          .path = std::move(path),
                          .headers = {{"content-type", "application/json"}},
                          .body = std::move(body)});
  }
};

TEST_F(WorkerTest, HasARouteOfItsOwn) {
  EXPECT_EQ(fetch("GET", "/healthz").status, 200);
  EXPECT_EQ(fetch("GET", "/healthz").body, R"({"status":"ok"})");
  EXPECT_EQ(fetch("GET", "/other").status, 404);
}

TEST_F(WorkerTest, SaysWhatItRuns) {
  EXPECT_EQ(fetch("GET", "/interpreter").body,
            R"({"language":"calc","engine":"Calc 1","contexts":false,"protocol":1})");
}

TEST_F(WorkerTest, RunsProgramsButHasNoContexts) {
  const auto answer = fetch("POST", "/execute", R"({"code":"env.X + 1","envVars":{"X":"41"}})");
  EXPECT_EQ(answer.status, 200);
  EXPECT_NE(answer.body.find(R"("results":[{"text":"42"}])"), std::string::npos) << answer.body;
  const auto failed = fetch("POST", "/execute", R"({"code":"1 / 0"})");
  EXPECT_EQ(failed.status, 200);
  EXPECT_NE(failed.body.find(R"("results":[])"), std::string::npos) << failed.body;
  EXPECT_NE(failed.body.find("division by zero"), std::string::npos) << failed.body;
  EXPECT_EQ(fetch("POST", "/interpreters/key/contexts", R"({"id":"c"})").status, 400);
}

}  // namespace
}  // namespace calc
