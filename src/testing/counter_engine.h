// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// An engine without Wasm for tests: a session is two pages of memory with a counter at address 0, and a program is
// one word. Every outcome's value is the counter. Any rule of the contract can be broken.

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sandbox_workers/engine/engine.h"

namespace sw::testing {

class CounterEngine final : public engine::Engine {
 public:
  struct Faults {
    bool wrong_value = false;
    bool error_fails_the_run = false;
    bool no_build = false;
    bool no_memory_limit = false;
    bool runs_share_state = false;
    bool limit_is_an_error_of_its_own = false;
    bool no_sessions = false;
    bool forgets_changes = false;
    bool restores_nothing = false;
    bool error_invalidates = false;
    bool crash_keeps_valid = false;
    bool invalid_still_runs = false;
    bool random_repeats = false;
  };

  CounterEngine() : CounterEngine(Faults{}) {}
  explicit CounterEngine(const Faults& faults, std::string build = "counter-1") : faults_(faults) {
    info_ = {.language = "counter",
             .engine_name = "Counter",
             .build = faults.no_build ? "" : std::move(build),
             .limits = {.memory_bytes = faults.no_memory_limit ? 0U : 8192U}};
  }

  const engine::EngineInfo& info() const override { return info_; }

  Result<engine::Outcome> run(const engine::RunRequest& request, wasi::OutputSink& output) override {
    if (request.code == "error" && faults_.error_fails_the_run) return Error{ErrorCode::kInternal, "broken", 0};
    if (faults_.runs_share_state) return shared_.execute(request, output);
    Instance instance(faults_, seed());
    return instance.execute(request, output);
  }

  bool has_sessions() const override { return !faults_.no_sessions; }
  Result<std::unique_ptr<engine::SessionInstance>> boot(const engine::SessionOptions& /*options*/) override {
    return std::unique_ptr<engine::SessionInstance>(std::make_unique<Instance>(faults_, seed()));
  }
  Result<std::unique_ptr<engine::SessionInstance>> restore(const engine::SessionOptions& /*options*/,
                                                           engine::SnapshotSource& source) override {
    auto instance = std::make_unique<Instance>(faults_, seed());
    if (!faults_.restores_nothing) SW_CHECK_OK(source.fill(instance->memory(), {}));
    return std::unique_ptr<engine::SessionInstance>(std::move(instance));
  }

 private:
  class Instance final : public engine::SessionInstance {
   public:
    Instance(const Faults& faults, std::uint64_t seed) : faults_(faults), memory_(8192), random_(seed) {}

    std::span<std::byte> memory() { return memory_; }
    bool invalid() const override { return invalid_; }
    bool can_snapshot() const override { return !invalid_; }

    Result<engine::SessionOutcome> execute(const engine::RunRequest& request,
                                           wasi::OutputSink& /*output*/) override {
      if (invalid_ && !faults_.invalid_still_runs) return Error{ErrorCode::kInvalidArgument, "used up", 0};
      engine::Outcome outcome;
      const std::string& code = request.code;
      if (code == "inc") {
        set(get() + 1);
      } else if (code == "random") {
        outcome.value = engine::Value{.text = std::to_string(++random_)};
        return outcome;
      } else if (code == "error") {
        invalid_ = faults_.error_invalidates;
        return failed("EngineError", engine::Ending::kGuestError);
      } else if (code == "limit") {
        set(get() + 0);
        return failed(faults_.limit_is_an_error_of_its_own ? "TimeoutError" : engine::kExecutionLimitError,
                      engine::Ending::kTimeLimit);
      } else if (code == "crash") {
        invalid_ = !faults_.crash_keeps_valid;
        return failed(engine::kEngineError, engine::Ending::kCrashed);
      }
      outcome.value = engine::Value{.text = faults_.wrong_value ? "7" : std::to_string(get())};
      return outcome;
    }

    Result<engine::SessionSnapshot> snapshot() override {
      engine::SessionSnapshot snapshot;
      snapshot.memory = memory_;
      if (!faults_.forgets_changes) snapshot.changed = {{0, 4096}};
      return snapshot;
    }

   private:
    std::uint32_t get() const {
      std::uint32_t value = 0;
      std::memcpy(&value, memory_.data(), sizeof value);
      return value;
    }
    void set(std::uint32_t value) { std::memcpy(memory_.data(), &value, sizeof value); }
    static engine::Outcome failed(std::string name, engine::Ending ending) {
      engine::Outcome outcome;
      outcome.ending = ending;
      outcome.error =
          engine::GuestError{.name = std::move(name), .message = "as asked", .traceback = {}, .line_number = {}};
      return outcome;
    }

    const Faults faults_;
    Bytes memory_;
    bool invalid_ = false;
    std::uint64_t random_;
  };

  /// Another one for each instance, and for each that is made from a snapshot.
  std::uint64_t seed() { return faults_.random_repeats ? 0 : ++made_ * 1000; }

  const Faults faults_;
  engine::EngineInfo info_;
  std::uint64_t made_ = 0;
  Instance shared_{faults_, 0};  // for runs_share_state
};

}  // namespace sw::testing
