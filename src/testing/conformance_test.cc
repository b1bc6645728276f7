// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/testing/conformance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "testing/counter_engine.h"

namespace sw::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

const ConformancePrograms kCounterPrograms = {
    .simple = {"read", "0"},
    .error = "error",
    .stateful = DefineAndUse{"inc", "read", "1"},
    .endless = "limit",
    .crash = "crash",
    .env = EnvProgram{"env", "NAME"},
    .cwd = CwdProgram{"enter", "show"},
    .files = FilesProgram{.write = "write", .fail = "write and fail"},
    .open_file = DefineAndUse{"open", "use", "0"},
    .random = "random"};

std::string violation_of(std::shared_ptr<CounterEngine> engine,
                         const ConformancePrograms& programs = kCounterPrograms) {
  const auto kept = run_engine_conformance(std::move(engine), programs);
  return kept.ok() ? "none" : kept.error().message;
}

TEST(Conformance, AnEngineThatKeepsTheContractPasses) {
  std::vector<std::string> names;
  std::vector<std::string> skipped;
  ConformancePrograms programs = kCounterPrograms;
  programs.env.reset();
  const auto kept = run_engine_conformance(
      std::make_shared<CounterEngine>(), programs, {.on_check = [&](const CheckReport& report) {
        (report.skipped ? skipped : names).emplace_back(report.name);
        EXPECT_EQ(report.violation, nullptr);
      }});
  EXPECT_TRUE(kept.ok()) << kept.error().message;
  EXPECT_THAT(names, Contains("an instance resumes from its snapshot"));
  EXPECT_THAT(skipped, Contains("a run sees only its own environment"));
}

TEST(Conformance, AnEngineWithoutSessionsIsAskedForNoStatefulProgram) {
  ConformancePrograms programs = kCounterPrograms;
  programs.stateful.reset();
  EXPECT_EQ(
      violation_of(std::make_shared<CounterEngine>(CounterEngine::Faults{.no_sessions = true}),
                   programs),
      "none");
  EXPECT_THAT(violation_of(std::make_shared<CounterEngine>(), programs),
              HasSubstr("stateful is missing"));
}

TEST(ParsePrograms, ReadsAllThatIsThereAndSaysWhatIsMissing) {
  const auto programs = parse_programs(R"({"simple": {"code": "1", "value": "1"}, "error": "x",
      "openFile": {"define": "d", "use": "u", "value": "v"}, "random": "r"})");
  ASSERT_TRUE(programs.ok()) << programs.error().message;
  EXPECT_EQ(programs->simple.expect_text, "1");
  EXPECT_EQ(programs->open_file->use, "u");
  EXPECT_EQ(programs->random, "r");
  EXPECT_FALSE(programs->crash.has_value());
  for (const char* bad :
       {"", "[]", R"({"error": "x"})", R"({"simple": {"code": 1}, "error": "x"})"}) {
    EXPECT_EQ(parse_programs(bad).error().code, ErrorCode::kInvalidArgument) << bad;
  }
}

struct Fault {
  const char* name;
  CounterEngine::Faults faults;
  const char* violated;
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class EachFault : public ::testing::TestWithParam<Fault> {};

TEST_P(EachFault, IsFound) {
  const CounterEngine::Faults& faults = GetParam().faults;
  const bool hangs = faults.ignores_limit || faults.ignores_limit_in_cell;
  std::string reported = "none";
  const auto kept =
      run_engine_conformance(std::make_shared<CounterEngine>(faults), kCounterPrograms,
                             {.patience = hangs ? std::chrono::nanoseconds(std::chrono::seconds(1))
                                                : ConformanceOptions{}.patience,
                              .on_check = [&](const CheckReport& report) {
                                EXPECT_EQ(reported, "none") << "a check after the violation";
                                if (report.violation != nullptr)
                                  reported = report.violation->message;
                              }});
  ASSERT_FALSE(kept.ok());
  EXPECT_THAT(kept.error().message, HasSubstr(GetParam().violated));
  EXPECT_EQ(reported, kept.error().message);
}

TEST(Conformance, ChecksReportOnTheThreadThatAsked) {
  const auto thread = std::this_thread::get_id();
  const auto kept = run_engine_conformance(
      std::make_shared<CounterEngine>(), kCounterPrograms,
      {.on_check = [&](const CheckReport&) { EXPECT_EQ(std::this_thread::get_id(), thread); }});
  EXPECT_TRUE(kept.ok()) << kept.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    Conformance, EachFault,
    ::testing::Values(
        Fault{"wrong_value",
              {.wrong_value = true},
              "a simple program returns its value: expected the value '0', got the value '7'"},
        Fault{"error_fails_the_run",
              {.error_fails_the_run = true},
              "an error in the code is part of the outcome: `run` failed"},
        Fault{"no_build", {.no_build = true}, "the engine describes itself: `build` is empty"},
        Fault{"no_memory_limit",
              {.no_memory_limit = true},
              "the engine reports its limits: `memory_bytes` is 0"},
        Fault{"runs_share_state",
              {.runs_share_state = true},
              "nothing from one run remains for the next"},
        Fault{"limit_is_an_error_of_its_own",
              {.limit_is_an_error_of_its_own = true},
              "an endless program ends at its limit: expected an ExecutionLimitError"},
        Fault{"forgets_changes",
              {.forgets_changes = true},
              "`changed` leaves out a change between 0 and 8192"},
        Fault{"forgets_later_changes",
              {.forgets_later_changes = true},
              "`changed` leaves out a change between 0 and 8192"},
        Fault{"restores_nothing",
              {.restores_nothing = true},
              "an instance resumes from its snapshot: expected the value '1', got the value '0'"},
        Fault{"error_invalidates",
              {.error_invalidates = true},
              "an error in the code made the instance invalid"},
        Fault{"crash_keeps_valid", {.crash_keeps_valid = true}, "`invalid` is false after a crash"},
        Fault{"invalid_still_runs",
              {.invalid_still_runs = true},
              "`execute` works although `invalid` is true"},
        Fault{"random_repeats",
              {.random_repeats = true},
              "random numbers differ in two instances from one snapshot: both gave"},
        Fault{"env_stays", {.env_stays = true}, "the next run also sees the variable"},
        Fault{"cannot_save",
              {.cannot_save = true},
              "`can_snapshot` is false after a run that left nothing open"},
        Fault{"limit_changes_memory",
              {.limit_changes_memory = true},
              "a limit leaves an instance usable, or invalid: expected the value '1', got the "
              "value '2'"},
        Fault{"error_is_completed",
              {.error_is_completed = true},
              "an error in the code is part of the outcome: `ending` is kCompleted for the error "
              "EngineError: as asked"},
        Fault{"ignores_cancel",
              {.ignores_cancel = true},
              "an endless program ends when it is cancelled: expected"},
        Fault{"changes_descend", {.changes_descend = true}, "must ascend and not overlap"},
        Fault{"no_memory", {.no_memory = true}, "`snapshot` gives no memory"},
        Fault{"end_fails",
              {.end_fails = true},
              "a context ends without an error: expected no error, got the error Error: "
              "as asked"},
        Fault{"limit_is_completed",
              {.limit_is_completed = true},
              "an endless program ends at its limit: `ending` is kCompleted"},
        Fault{"value_is_no_completion",
              {.value_is_no_completion = true},
              "a simple program returns its value: `ending` is kGuestError for the value '0'"},
        Fault{"ignores_limit",
              {.ignores_limit = true},
              "an endless program ends at its limit: a run that may take 0.1 s has not ended 1 s "
              "later"},
        Fault{"ignores_limit_in_cell",
              {.ignores_limit_in_cell = true},
              "a limit leaves an instance usable, or invalid: a run that may take 0.1 s has not "
              "ended"},
        Fault{"hides_cwd",
              {.hides_cwd = true},
              "the current directory is kept: `cwd` is '/workspace'"},
        Fault{"forgets_cwd",
              {.forgets_cwd = true},
              "the current directory is kept: expected the value"},
        Fault{"writes_elsewhere",
              {.writes_elsewhere = true},
              "/workspace/conformance.txt is missing"},
        Fault{"writes_nothing_before_errors",
              {.writes_nothing_before_errors = true},
              "what was written before an error is kept: /workspace/conformance.txt has the "
              "content 'content'"},
        Fault{"writes_in_disabled",
              {.writes_in_disabled = true},
              "nothing can be written in a sandbox without files"},
        Fault{"loses_open_file",
              {.loses_open_file = true},
              "an open file stays open, or keeps memory from being saved"}),
    [](const auto& fault) { return std::string(fault.param.name); });

}  // namespace
}  // namespace sw::testing
