// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/testing/conformance.h"

#include <fmt/format.h>

#include <memory>
#include <thread>
#include <utility>

#include "testing/checks.h"

namespace sw::testing {

namespace {

constexpr std::string_view kStatefulGiven =
    "an engine with sessions must provide a stateful program";

const char* name_of(Ending ending) {
  switch (ending) {
    case Ending::kCompleted: return "kCompleted";
    case Ending::kGuestError: return "kGuestError";
    case Ending::kExited: return "kExited";
    case Ending::kTimeLimit: return "kTimeLimit";
    case Ending::kMemoryLimit: return "kMemoryLimit";
    case Ending::kResultLimit: return "kResultLimit";
    case Ending::kCancelled: return "kCancelled";
    case Ending::kCrashed: return "kCrashed";
  }
  return "no ending";
}

}  // namespace

Result<void> Checks::check(std::string_view name, const std::function<Result<void>()>& body) {
  if (!progress_.begin_check(name)) return violated("nothing is waiting for the checks anymore");
  const Result<void> result = body();
  if (result.ok()) {
    progress_.end_check(false, std::nullopt);
    return {};
  }
  Error violation{ErrorCode::kInternal, fmt::format("{}: {}", name, result.error().message), 0};
  progress_.end_check(false, violation);
  return violation;
}

void Checks::skip(std::string_view name) {
  progress_.begin_check(name);
  progress_.end_check(true, std::nullopt);
}

void Checks::run_limited(std::chrono::nanoseconds wall_max, const std::function<void()>& body) {
  progress_.begin_run(wall_max);
  body();
  progress_.end_run();
}

Result<void> Checks::run_guest(engine::Engine& engine, std::chrono::nanoseconds wall_max,
                               const std::function<void()>& body) {
  return engine.on_guest_thread([&] { run_limited(wall_max, body); });
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
  if (outcome.ending != Ending::kCompleted)
    return violated(
        fmt::format("`ending` is {} for {}", name_of(outcome.ending), describe(outcome)));
  if (text && (!outcome.value || outcome.value->text != *text)) {
    return violated(fmt::format("expected the value '{}', got {}", *text, describe(outcome)));
  }
  return {};
}

Result<void> expect_value(const Outcome& outcome) { return expect_value(outcome, std::nullopt); }

Result<void> expect_error(const Outcome& outcome) {
  if (!outcome.error) return violated(fmt::format("expected an error, got {}", describe(outcome)));
  if (outcome.error->name.empty()) return violated("the error has no name");
  if (outcome.value) return violated("there is a value besides the error");
  if (outcome.ending == Ending::kCompleted || outcome.ending == Ending::kExited)
    return violated(
        fmt::format("`ending` is {} for {}", name_of(outcome.ending), describe(outcome)));
  return {};
}

Result<void> expect_limit(const Outcome& outcome) {
  SW_CHECK_OK(expect_error(outcome));
  if (outcome.error->name != kExecutionLimitError)
    return violated(fmt::format("expected an {}, got {}", kExecutionLimitError, describe(outcome)));
  if (outcome.ending == Ending::kTimeLimit) return {};
  return violated(fmt::format("`ending` is {} for {}", name_of(outcome.ending), describe(outcome)));
}

Run request_for(std::string_view code) {
  Run request;
  request.code = code;
  return request;
}

namespace {

Result<void> run_checks(Progress& progress, const std::shared_ptr<engine::Engine>& engine,
                        const ConformancePrograms& programs, const ConformanceOptions& options) {
  Checks checks(progress);
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

}  // namespace

Result<void> run_engine_conformance(const std::shared_ptr<engine::Engine>& engine,
                                    const ConformancePrograms& programs,
                                    const ConformanceOptions& options) {
  const auto progress = std::make_shared<Progress>(options.patience);
  // All that it uses is its own, in case it is left behind.
  std::thread thread([progress, engine, programs, options] {
    progress->finish(run_checks(*progress, engine, programs, options));
  });
  Result<void> result = progress->wait(options.on_check);
  if (progress->given_up()) thread.detach();
  else thread.join();
  return result;
}

}  // namespace sw::testing
