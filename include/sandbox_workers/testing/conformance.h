// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Does an engine keep the contract of engine/engine.h? One call answers, whatever the test
// framework:
//
//   TEST(Calc, KeepsTheContract) {
//     const auto kept = sw::testing::run_engine_conformance(
//         engine, {.simple = {"1 + 2 * 3", "7"}, .error = "1 +"});
//     EXPECT_TRUE(kept.ok()) << kept.error().message;
//   }
//
// The engine is run alone and, if it has sessions, behind a runtime Worker as a Sandbox would use
// it. The programs are in the engine's own language; optional ones are for checks that not every
// language can support.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/engine.h"
#include "sandbox_workers/testing/test_state.h"

namespace sw::testing {

/// A program and the text or JSON of its value.
struct ProgramAndValue {
  std::string code;
  std::optional<std::string> expect_text = {};  ///< absent: any value, or none
};

/// Two cells of one context, the second of which needs what the first left.
struct DefineAndUse {
  std::string define;
  std::string use;  ///< gives the same value each time it is run
  std::string expect_text;
};

/// A program that looks at its environment.
struct EnvProgram {
  /// Its value is what the environment variable `name` holds; without one, anything else
  std::string code;
  std::string name;
  std::string value = "4711";
  std::string expect_text = "4711";  ///< how the value shows
};

/// Programs that change and show the current directory.
struct CwdProgram {
  std::string enter;  ///< makes the folder /workspace/conformance and goes there
  std::string show;   ///< its value is the current directory
  /// Its value when `show` runs in /workspace/conformance.
  std::string expect_text = "/workspace/conformance";
};

/// Programs that write a file.
struct FilesProgram {
  std::string write;  ///< writes "content" and nothing else to `path`
  std::string path = "/workspace/conformance.txt";
  std::optional<std::string> fail =
      {};  ///< writes "failed" and nothing else to `path`, then raises an error
};

/// The programs an engine is checked with.
struct ConformancePrograms {
  ProgramAndValue simple;
  std::string error;  ///< raises an error that it does not catch, or is not a valid program
  /// Required if the engine has sessions.
  std::optional<DefineAndUse> stateful = {};

  /// Never ends by itself.
  std::optional<std::string> endless = {};
  /// Brings the interpreter down: a trap, an abort.
  std::optional<std::string> crash = {};
  std::optional<EnvProgram> env = {};
  std::optional<CwdProgram> cwd = {};
  std::optional<FilesProgram> files = {};
  /// The first cell leaves a file open, the second continues to use it.
  std::optional<DefineAndUse> open_file = {};
  /// Its value is a random number, different each time.
  std::optional<std::string> random = {};
};

/// The programs from JSON, for engines that keep them in a file:
///   {"simple": {"code", "value"?}, "error": "…", "stateful": {"define", "use", "value"},
///   "endless": "…",
///    "crash": "…", "env": {"code", "name", "value"?}, "cwd": {"enter", "show", "value"}, "files":
///    {"write", "fail"?}, "openFile": {"define", "use", "value"}, "random": "…"}
/// where only the first two are required.
/// Errors: kInvalidArgument saying what is missing or of another type.
Result<ConformancePrograms> parse_programs(std::string_view json);

/// The programs that a built-in language is checked with. Errors: kNotFound.
Result<ConformancePrograms> built_in_programs(std::string_view language);

/// The result of one check.
struct CheckReport {
  std::string_view name;  ///< "an error in the code is part of the outcome"
  bool skipped = false;   ///< the engine has no sessions, or the program was not given
  const Error* violation = nullptr;
};

/// How the checks are run. All of it is optional.
struct ConformanceOptions {
  /// Where contexts are stored; null: a new state.
  std::shared_ptr<TestState> state = nullptr;
  std::string key = "conformance";
  /// How much longer than its limit a run may take, on a busy machine. A run
  /// that takes longer is a violation; its thread is left behind, with the engine.
  std::chrono::nanoseconds patience = std::chrono::seconds(30);
  /// Called after each check, on the calling thread. After a violation no check follows.
  std::function<void(const CheckReport&)> on_check = {};
};

/// Runs all checks. Takes about a second, plus what the engine's own runs take. Threads: any; it
/// blocks.
/// Errors: the first check that is violated, as kInternal: its name and what was found.
Result<void> run_engine_conformance(const std::shared_ptr<engine::Engine>& engine,
                                    const ConformancePrograms& programs,
                                    const ConformanceOptions& options = {});

}  // namespace sw::testing
