// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// The engine alone: what it says of itself, and runs of which nothing remains.

#include <fmt/format.h>

#include <chrono>

#include "testing/checks.h"

namespace sw::testing {

namespace {

using engine::Engine;

// Long enough that a slow machine begins the program, short enough to wait for.
constexpr std::chrono::milliseconds kEndlessFor{100};

Result<Outcome> run(Checks& checks, Engine& engine, const Run& request) {
  RunOutput output;
  Result<Outcome> outcome = Outcome{};
  SW_CHECK_OK(checks.run_guest(engine, request.limits.wall_max,
                               [&] { outcome = engine.run(request, output); }));
  if (!outcome.ok()) {
    return violated(fmt::format("`run` failed: {}", outcome.error().message));
  }
  return outcome;
}

Result<void> check_about(const engine::EngineInfo& about) {
  if (about.language.empty()) return violated("`language` is empty");
  if (about.engine_name.empty()) return violated("`engine_name` is empty");
  if (about.build.empty()) return violated("`build` is empty");
  return {};
}

Result<void> check_limits(const engine::EngineLimits& limits) {
  if (limits.memory_bytes == 0) return violated("`memory_bytes` is 0");
  if (limits.code_bytes == 0) return violated("`code_bytes` is 0");
  if (limits.request_bytes == 0) return violated("`request_bytes` is 0");
  return {};
}

Result<void> check_env(Checks& checks, Engine& engine, const EnvProgram& program) {
  Run request = request_for(program.code);
  request.env = {{program.name, program.value}};
  SW_TRY(const Outcome with, run(checks, engine, request));
  SW_CHECK_OK(expect_value(with, program.expect_text));
  request.env.clear();
  SW_TRY(const Outcome without, run(checks, engine, request));
  if (!without.error && without.value && without.value->text == program.expect_text) {
    return violated("the next run also sees the variable");
  }
  return {};
}

Result<void> check_nothing_remains(Checks& checks, Engine& engine, const DefineAndUse& program) {
  SW_TRY(const Outcome defined, run(checks, engine, request_for(program.define)));
  SW_CHECK_OK(expect_value(defined));
  SW_TRY(const Outcome used, run(checks, engine, request_for(program.use)));
  if (used.error || !used.value || used.value->text != program.expect_text) return {};
  return violated("the second run sees what the first one defined");
}

Result<void> check_endless(Checks& checks, Engine& engine, const std::string& code) {
  Run request = request_for(code);
  request.limits.wall_max = kEndlessFor;
  SW_TRY(const Outcome outcome, run(checks, engine, request));
  return expect_limit(outcome);
}

Result<void> check_cancelled(Checks& checks, Engine& engine, const std::string& code) {
  std::stop_source stop;
  stop.request_stop();
  Run request = request_for(code);
  request.cancel = stop.get_token();
  SW_TRY(const Outcome outcome, run(checks, engine, request));
  SW_CHECK_OK(expect_error(outcome));
  if (outcome.ending == Ending::kCancelled) return {};
  return violated(fmt::format("`ending` is not kCancelled for {}", describe(outcome)));
}

}  // namespace

Result<void> check_engine(Checks& checks, const std::shared_ptr<Engine>& engine,
                          const ConformancePrograms& programs) {
  const auto simple_works = [&]() -> Result<void> {
    SW_TRY(const Outcome outcome, run(checks, *engine, request_for(programs.simple.code)));
    return expect_value(outcome, programs.simple.expect_text);
  };
  SW_CHECK_OK(checks.check("a simple program returns its value", simple_works));
  SW_CHECK_OK(checks.check("an error in the code is part of the outcome", [&]() -> Result<void> {
    SW_TRY(const Outcome outcome, run(checks, *engine, request_for(programs.error)));
    return expect_error(outcome);
  }));
  SW_CHECK_OK(
      checks.check("the engine describes itself", [&] { return check_about(engine->info()); }));
  SW_CHECK_OK(checks.check("the engine reports its limits",
                           [&] { return check_limits(engine->info().limits); }));
  SW_CHECK_OK(checks.check_with(
      "a run sees only its own environment", programs.env,
      [&](const EnvProgram& program) { return check_env(checks, *engine, program); }));
  SW_CHECK_OK(checks.check_with("nothing from one run remains for the next", programs.stateful,
                                [&](const DefineAndUse& program) {
                                  return check_nothing_remains(checks, *engine, program);
                                }));
  SW_CHECK_OK(checks.check_with(
      "an endless program ends at its limit", programs.endless,
      [&](const std::string& code) { return check_endless(checks, *engine, code); }));
  SW_CHECK_OK(checks.check_with(
      "an endless program ends when it is cancelled", programs.endless,
      [&](const std::string& code) { return check_cancelled(checks, *engine, code); }));
  SW_CHECK_OK(checks.check_with("a crash is part of the outcome", programs.crash,
                                [&](const std::string& code) -> Result<void> {
                                  SW_TRY(const Outcome outcome,
                                         run(checks, *engine, request_for(code)));
                                  return expect_error(outcome);
                                }));
  return checks.check("a simple program works after all that", simple_works);
}

}  // namespace sw::testing
