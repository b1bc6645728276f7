// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the groups of checks share.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/engine.h"
#include "sandbox_workers/engine/run.h"
#include "sandbox_workers/testing/conformance.h"
#include "testing/progress.h"

namespace sw::testing {

/// Runs checks in order and reports each.
class Checks {
 public:
  /// `progress` outlives it.
  explicit Checks(Progress& progress) : progress_(progress) {}

  /// The violation, if `body` finds one, with the check's name before it.
  Result<void> check(std::string_view name, const std::function<Result<void>()>& body);
  void skip(std::string_view name);
  /// Skips the check if the program is missing.
  template <class Program, class Body>
  Result<void> check_with(std::string_view name, const std::optional<Program>& program, Body body) {
    if (program) return check(name, [&]() -> Result<void> { return body(*program); });
    skip(name);
    return {};
  }

  /// Does one run of the engine, which may take `wall_max`.
  void run_limited(std::chrono::nanoseconds wall_max, const std::function<void()>& body);
  /// The same where guests can run.
  Result<void> run_guest(engine::Engine& engine, std::chrono::nanoseconds wall_max,
                         const std::function<void()>& body);

 private:
  Progress& progress_;
};

Error violated(std::string what);

/// "the value '2'", "the error ValueError: broken", "no value": what an outcome is, for messages.
std::string describe(const Outcome& outcome);

/// No error and, if a text is expected, that value.
Result<void> expect_value(const Outcome& outcome, const std::optional<std::string>& text);
Result<void> expect_value(const Outcome& outcome);
Result<void> expect_error(const Outcome& outcome);
/// An error whose name says that a limit ended the run.
Result<void> expect_limit(const Outcome& outcome);

Run request_for(std::string_view code);

/// Checks that need the engine alone.
Result<void> check_engine(Checks& checks, const std::shared_ptr<engine::Engine>& engine,
                          const ConformancePrograms& programs);

/// Checks of session instances without a server around them.
Result<void> check_sessions(Checks& checks, const std::shared_ptr<engine::Engine>& engine,
                            const ConformancePrograms& programs);

/// Checks of contexts behind a runtime Worker.
Result<void> check_server(Checks& checks, const std::shared_ptr<engine::Engine>& engine,
                          const ConformancePrograms& programs, const ConformanceOptions& options);

}  // namespace sw::testing
