// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// Session instances without a server around them.

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <memory>

#include "sandbox_workers/workspace/workspace.h"
#include "testing/checks.h"
#include "testing/kept_snapshot.h"
#include "wasi/tree_state.h"

namespace sw::testing {

namespace {

using engine::Engine;
using engine::SessionInstance;

constexpr std::chrono::milliseconds kEndlessFor{100};

/// An engine's instances and the files they share.
class Sessions {
 public:
  Sessions(Checks& checks, Engine& engine) : checks_(checks), engine_(engine) {}

  Result<std::unique_ptr<SessionInstance>> boot() { return engine_.boot(); }
  Result<std::unique_ptr<SessionInstance>> restore(engine::SnapshotSource& source) {
    return engine_.restore(source);
  }

  Result<Outcome> execute(SessionInstance& instance, std::string_view code,
                          std::chrono::nanoseconds wall_max = RunLimits{}.wall_max) {
    Run request = request_for(code);
    request.files = workspace_.for_run();
    request.limits.wall_max = wall_max;
    RunOutput output;
    Result<Outcome> outcome = Outcome{};
    checks_.run_limited(wall_max, [&] { outcome = instance.execute(request, output); });
    if (outcome.ok() && outcome->files) {
      SW_CHECK_OK(workspace_.apply_diff(*outcome->files, 0));
    }
    return outcome;
  }

  /// An instance in which `code` has run well.
  Result<std::unique_ptr<SessionInstance>> after(std::string_view code) {
    SW_TRY(auto instance, boot());
    SW_TRY(const Outcome outcome, execute(*instance, code));
    SW_CHECK_OK(expect_value(outcome));
    return instance;
  }

  Result<void> expect(SessionInstance& instance, std::string_view code, const std::string& text) {
    SW_TRY(const Outcome outcome, execute(instance, code));
    return expect_value(outcome, text);
  }

 private:
  Checks& checks_;
  Engine& engine_;
  Workspace workspace_{wasi::TreeLimits{}, 0};
};

/// What is true of an instance that must not be used again.
Result<void> expect_refusal(Sessions& sessions, SessionInstance& instance, std::string_view code) {
  if (instance.can_snapshot()) return violated("`can_snapshot` is true although `invalid` is");
  if (sessions.execute(instance, code).ok())
    return violated("`execute` works although `invalid` is true");
  if (!instance.invalid()) return violated("`invalid` does not stay true");
  return {};
}

/// `before`: the instance's last one.
Result<KeptSnapshot> keep(SessionInstance& instance, const KeptSnapshot* before = nullptr) {
  if (!instance.can_snapshot())
    return violated("`can_snapshot` is false after a run that left nothing open");
  SW_TRY(const engine::SessionSnapshot snapshot, instance.snapshot());
  SW_TRY(KeptSnapshot kept, KeptSnapshot::copy(snapshot));
  SW_CHECK_OK(kept.check_changed(snapshot, before));
  return kept;
}

Result<void> check_restore(Sessions& sessions, const DefineAndUse& program) {
  SW_TRY(auto instance, sessions.after(program.define));
  SW_CHECK_OK(sessions.expect(*instance, program.use, program.expect_text));
  SW_TRY(const KeptSnapshot first, keep(*instance));
  SW_CHECK_OK(sessions.expect(*instance, program.use, program.expect_text));
  SW_TRY(KeptSnapshot kept, keep(*instance, &first));
  instance.reset();
  SW_TRY(const auto restored, sessions.restore(kept));
  return sessions.expect(*restored, program.use, program.expect_text);
}

Result<void> check_error(Sessions& sessions, const ConformancePrograms& programs) {
  SW_TRY(const auto instance, sessions.after(programs.stateful->define));
  SW_TRY(const Outcome outcome, sessions.execute(*instance, programs.error));
  SW_CHECK_OK(expect_error(outcome));
  if (instance->invalid()) return violated("an error in the code made the instance invalid");
  return sessions.expect(*instance, programs.stateful->use, programs.stateful->expect_text);
}

/// After what may or may not have cost the instance: it goes on, or it refuses.
Result<void> expect_goes_on_or_refuses(Sessions& sessions, SessionInstance& instance,
                                       const DefineAndUse& program) {
  if (instance.invalid()) return expect_refusal(sessions, instance, program.use);
  return sessions.expect(instance, program.use, program.expect_text);
}

Result<void> check_limit(Sessions& sessions, const DefineAndUse& stateful,
                         std::string_view endless) {
  SW_TRY(const auto instance, sessions.after(stateful.define));
  SW_TRY(const Outcome outcome, sessions.execute(*instance, endless, kEndlessFor));
  SW_CHECK_OK(expect_limit(outcome));
  return expect_goes_on_or_refuses(sessions, *instance, stateful);
}

Result<void> check_crash(Sessions& sessions, const DefineAndUse& stateful, std::string_view crash) {
  SW_TRY(const auto instance, sessions.after(stateful.define));
  SW_TRY(const Outcome outcome, sessions.execute(*instance, crash));
  SW_CHECK_OK(expect_error(outcome));
  if (!instance->invalid()) return violated("`invalid` is false after a crash");
  return expect_refusal(sessions, *instance, stateful.use);
}

Result<void> check_random(Sessions& sessions, std::string_view code) {
  SW_TRY(const auto instance, sessions.after(code));
  SW_TRY(KeptSnapshot kept, keep(*instance));
  std::string values[2];
  for (std::string& value : values) {
    SW_TRY(const auto restored, sessions.restore(kept));
    SW_TRY(const Outcome outcome, sessions.execute(*restored, code));
    SW_CHECK_OK(expect_value(outcome));
    if (!outcome.value) return violated("the program has no value");
    value = outcome.value->text;
  }
  if (values[0] == values[1]) return violated(fmt::format("both gave {}", values[0]));
  return {};
}

}  // namespace

Result<void> check_sessions(Checks& checks, const std::shared_ptr<Engine>& engine,
                            const ConformancePrograms& programs) {
  Sessions sessions(checks, *engine);
  const auto within = [&](const std::function<Result<void>()>& body) -> Result<void> {
    Result<void> result;
    SW_CHECK_OK(engine->on_guest_thread([&] { result = body(); }));
    return result;
  };
  const DefineAndUse& stateful = *programs.stateful;
  SW_CHECK_OK(checks.check("an instance resumes from its snapshot", [&] {
    return within([&] { return check_restore(sessions, stateful); });
  }));
  SW_CHECK_OK(checks.check("an error in the code leaves an instance usable", [&] {
    return within([&] { return check_error(sessions, programs); });
  }));
  SW_CHECK_OK(checks.check_with("a limit leaves an instance usable, or invalid", programs.endless,
                                [&](const std::string& code) {
                                  return within(
                                      [&] { return check_limit(sessions, stateful, code); });
                                }));
  SW_CHECK_OK(checks.check_with("a crash leaves an instance permanently invalid", programs.crash,
                                [&](const std::string& code) {
                                  return within(
                                      [&] { return check_crash(sessions, stateful, code); });
                                }));
  return checks.check_with("random numbers differ in two instances from one snapshot",
                           programs.random, [&](const std::string& code) {
                             return within([&] { return check_random(sessions, code); });
                           });
}

}  // namespace sw::testing
