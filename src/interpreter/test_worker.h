// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A runtime Worker with one Interpreter, and the part of a Sandbox that a test needs: the files.

#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "interpreter/worker.h"
#include "object/clock.h"
#include "sandbox_workers/engine/all_languages.h"
#include "sandbox_workers/engine/machine.h"
#include "wasi/tree_state.h"

namespace sw::interpreter {

/// What Workers stand on, over a storage. `storage` and `clock` outlive it.
class TestParts {
 public:
  TestParts(storage::Storage& storage, object::Clock& clock, const ResidencyLimits& limits = {},
            std::size_t slots = 0)
      : clock_(clock), guests({.slots = slots}), residency(limits), objects(storage, clock, {}) {}

  WorkerParts parts() {
    return {.objects = objects, .clock = clock_, .guests = guests, .residency = residency};
  }

 private:
  object::Clock& clock_;

 public:
  executor::GuestPool guests;
  ResidencyPool residency;
  object::ObjectHost objects;
};

class TestWorker {
 public:
  /// Loaded once in this process.
  static std::shared_ptr<engine::Engine> engine(const std::string& language) {
    static const std::unique_ptr<engine::Machine> machine = engine::Machine::create().value();
    static std::map<std::string, std::shared_ptr<engine::Engine>> engines;
    auto& engine = engines[language];
    if (!engine) engine = machine->load(engine::find_language(language).value()).value();
    return engine;
  }

  /// `storage` and `sandbox_files` outlive it.
  TestWorker(std::shared_ptr<engine::Engine> engine, storage::Storage& storage,
             Workspace& sandbox_files, const ResidencyLimits& residency = {})
      : files(sandbox_files),
        clock_(object::make_system_clock()),
        parts_(storage, *clock_, residency),
        worker_(std::move(engine), {}, parts_.parts()) {}

  protocol::Response request(const std::string& method, const std::string& path,
                             const std::string& body = {}) {
    return worker_.fetch({.method = method, .path = "/interpreters/key" + path, .body = body});
  }
  protocol::Response post(const std::string& path, const std::string& body) {
    return request("POST", "/contexts/" + path, body);
  }
  int create(const std::string& id, const std::string& cwd = "/workspace") {
    return request("POST", "/contexts", fmt::format(R"({{"id":"{}","cwd":"{}"}})", id, cwd)).status;
  }

  /// What is refused comes back as a crash, with the message as the error's name.
  protocol::ExecuteResponse run(const std::string& id, const std::string& code,
                                const RunLimits& limits = {}) {
    Run run{.code = code, .context = id, .home = home, .limits = limits, .on_error = after_error};
    return take(std::move(run));
  }
  /// Its exit handlers run.
  protocol::ExecuteResponse end(const std::string& id,
                                const RunLimits& limits = {.wall_max = std::chrono::minutes(10)}) {
    return take({.context = id, .ends_context = true, .limits = limits});
  }

  Result<protocol::ExecuteResponse> execute(protocol::ExecuteArgs args, RunEvents& events) {
    SW_TRY(const auto interpreter, worker_.interpreter("key"));
    Result<protocol::ExecuteResponse> answer = Error{};
    SW_CHECK_OK(parts_.guests.run({}, [&](executor::GuestPool::Slot&) {
      answer = interpreter->execute(std::move(args), events);
    }));
    return answer;
  }

  Workspace& files;
  RunOutput printed;                           ///< by the last run
  AfterError after_error = AfterError::kKeep;  ///< of the next runs
  bool home = false;                           ///< of the next runs

 private:
  protocol::ExecuteResponse take(Run run) {
    run.files = files.for_run();
    printed = {};
    protocol::ExecuteArgs args{.run = std::move(run)};
    auto answer = execute(std::move(args), printed);
    if (!answer.ok()) {
      protocol::ExecuteResponse response;
      response.outcome.ending = Ending::kCrashed;
      response.outcome.error = GuestError{.name = answer.error().message,
                                          .message = std::string(code_name(answer.error().code))};
      response.outcome.context.emplace();
      return response;
    }
    (void)files.apply_diff(*answer->outcome.files, 1);
    return *std::move(answer);
  }

  const std::unique_ptr<object::Clock> clock_;
  TestParts parts_;
  Worker worker_;
};

}  // namespace sw::interpreter
