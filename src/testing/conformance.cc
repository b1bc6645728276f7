// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/testing/conformance.h"

#include <fmt/format.h>

#include <utility>

#include "testing/checks.h"

namespace sw::testing {

namespace {

constexpr std::string_view kStatefulGiven = "an engine with sessions brings a stateful program";

}  // namespace

Result<void> Checks::check(std::string_view name, const std::function<Result<void>()>& body) {
  const Result<void> result = body();
  if (result.ok()) {
    if (on_check_) on_check_({.name = name});
    return {};
  }
  Error violation{ErrorCode::kInternal, fmt::format("{}: {}", name, result.error().message), 0};
  if (on_check_) on_check_({.name = name, .violation = &violation});
  return violation;
}

void Checks::skip(std::string_view name) {
  if (on_check_) on_check_({.name = name, .skipped = true});
}

Error violated(std::string what) { return Error{ErrorCode::kInternal, std::move(what), 0}; }

std::string describe(const Outcome& outcome) {
  if (outcome.error)
    return fmt::format("the error {}: {}", outcome.error->name, outcome.error->message);
  if (outcome.exit_code) return fmt::format("exit status {}", *outcome.exit_code);
  if (outcome.value) return fmt::format("the value '{}'", outcome.value->text);
  return "no value";
}

Result<void> expect_value(const Outcome& outcome, const std::optional<std::string>& text) {
  if (outcome.error) return violated(fmt::format("expected no error, got {}", describe(outcome)));
  if (text && (!outcome.value || outcome.value->text != *text)) {
    return violated(fmt::format("expected the value '{}', got {}", *text, describe(outcome)));
  }
  return {};
}

Result<void> expect_value(const Outcome& outcome) { return expect_value(outcome, std::nullopt); }

Result<void> expect_error(const Outcome& outcome) {
  if (!outcome.error) return violated(fmt::format("expected an error, got {}", describe(outcome)));
  if (outcome.error->name.empty()) return violated("the error has no name");
  if (outcome.value) return violated("there is a value beside the error");
  return {};
}

Result<void> expect_limit(const Outcome& outcome) {
  SW_CHECK_OK(expect_error(outcome));
  if (outcome.error->name == kExecutionLimitError) return {};
  return violated(fmt::format("expected an {}, got {}", kExecutionLimitError, describe(outcome)));
}

Run request_for(std::string_view code) {
  Run request;
  request.code = code;
  return request;
}

Result<void> run_engine_conformance(const std::shared_ptr<engine::Engine>& engine,
                                    const ConformancePrograms& programs,
                                    const ConformanceOptions& options) {
  Checks checks(options.on_check);
  SW_CHECK_OK(check_engine(checks, engine, programs));
  if (!engine->has_sessions()) {
    checks.skip(kStatefulGiven);
    return {};
  }
  SW_CHECK_OK(checks.check(kStatefulGiven, [&]() -> Result<void> {
    if (programs.stateful) return {};
    return violated("ConformancePrograms::stateful is missing");
  }));
  SW_CHECK_OK(check_sessions(checks, engine, programs));
  return check_server(checks, engine, programs, options);
}

}  // namespace sw::testing
