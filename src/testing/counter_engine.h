// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// An engine without Wasm for tests: a session is two pages of memory with a counter at address 0 and
// the number of its cells in the second, and a program is one word. Every outcome's value is the counter. Any rule of the contract can be
// broken.

#include <fmt/format.h>

#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sandbox_workers/engine/engine.h"
#include "sandbox_workers/workspace/mirror.h"

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
    bool forgets_later_changes = false;  ///< those after the first snapshot
    bool restores_nothing = false;
    bool error_invalidates = false;
    bool crash_keeps_valid = false;
    bool invalid_still_runs = false;
    bool random_repeats = false;
    bool env_stays = false;
    bool hides_cwd = false;
    bool forgets_cwd = false;
    bool writes_elsewhere = false;
    bool writes_in_disabled = false;
    bool writes_nothing_before_errors = false;
    bool loses_open_file = false;
    bool cannot_save = false;
    bool limit_changes_memory = false;
    bool error_is_completed = false;
    bool limit_is_completed = false;
    bool value_is_no_completion = false;
    bool ignores_limit = false;          ///< of a run without context
    bool ignores_limit_in_cell = false;  ///< of an instance
    bool end_fails = false;
    bool ignores_cancel = false;
    bool no_memory = false;  ///< in a snapshot
    bool changes_descend = false;
  };

  CounterEngine() : CounterEngine(Faults{}) {}
  explicit CounterEngine(const Faults& faults, std::string build = "counter-1") : faults_(faults) {
    info_ = {.language = "counter",
             .engine_name = "Counter",
             .build = faults.no_build ? "" : std::move(build),
             .limits = {.memory_bytes = faults.no_memory_limit ? 0U : 8192U}};
  }

  const engine::EngineInfo& info() const override { return info_; }

  Result<Outcome> run(const Run& request, RunEvents& output) override {
    if (request.code == "error" && faults_.error_fails_the_run)
      return Error{ErrorCode::kInternal, "broken", 0};
    if (faults_.runs_share_state || faults_.env_stays) return shared_.execute(request, output);
    Instance instance(faults_, seed());
    return instance.execute(request, output);
  }

  bool has_sessions() const override { return !faults_.no_sessions; }
  Result<std::unique_ptr<engine::SessionInstance>> boot() override {
    return std::unique_ptr<engine::SessionInstance>(std::make_unique<Instance>(faults_, seed()));
  }
  Result<std::unique_ptr<engine::SessionInstance>> restore(
      engine::SnapshotSource& source) override {
    auto instance = std::make_unique<Instance>(faults_, seed());
    if (!faults_.restores_nothing) {
      SpanPageSink memory(instance->memory());
      SW_TRY(const BytesView extra, source.fill(memory, {}));
      instance->take_extra(extra);
    }
    return std::unique_ptr<engine::SessionInstance>(std::move(instance));
  }

 private:
  struct Place {
    std::string cwd = "/workspace";
    bool file_open = false;
  };

  class Instance final : public engine::SessionInstance {
   public:
    Instance(const Faults& faults, std::uint64_t seed)
        : faults_(faults), memory_(8192), random_(seed) {}

    std::span<std::byte> memory() { return memory_; }
    bool invalid() const override { return invalid_; }
    bool can_snapshot() const override { return !invalid_ && !faults_.cannot_save; }

    Result<Outcome> execute(const Run& request, RunEvents& /*output*/) override {
      if (invalid_ && !faults_.invalid_still_runs)
        return Error{ErrorCode::kInvalidArgument, "used up", 0};
      if (request.files) {
        SW_CHECK_OK(mirror_.follow(*request.files, 0));
      }
      Outcome outcome = perform(request);
      memory_[kPageBytes] = static_cast<std::byte>(static_cast<int>(memory_[kPageBytes]) + 1);
      if (request.files) outcome.files = mirror_.changes();
      if (!faults_.hides_cwd) outcome.cwd = place_.cwd;
      return outcome;
    }

    Result<engine::SessionSnapshot> snapshot() override {
      engine::SessionSnapshot snapshot;
      if (!faults_.no_memory) snapshot.memory = std::make_unique<SpanPageSource>(memory_);
      if (!faults_.forgets_changes && !(saved_ && faults_.forgets_later_changes))
        snapshot.changed = {{0, 8192}};
      saved_ = true;
      if (faults_.changes_descend) snapshot.changed = {{0, 8192}, {4096, 8192}};
      const bool keep_open = place_.file_open && !faults_.loses_open_file;
      const std::string extra =
          (keep_open ? "+" : "-") + (faults_.forgets_cwd ? "/workspace" : place_.cwd);
      snapshot.extra.assign(as_bytes(extra).begin(), as_bytes(extra).end());
      return snapshot;
    }

    void take_extra(BytesView extra) {
      place_ = {.cwd = std::string(as_text(extra.subspan(1))),
                .file_open = as_text(extra).front() == '+'};
    }

   private:
    Outcome perform(const Run& request) {
      const std::string& code = request.code;
      if (request.ends_context)
        return faults_.end_fails ? failed("Error", Ending::kGuestError) : Outcome{};
      if (code == "error") {
        if (faults_.error_is_completed) return failed("EngineError", Ending::kCompleted);
        invalid_ = faults_.error_invalidates;
        return failed("EngineError", Ending::kGuestError);
      }
      if (code == "limit") {
        if (request.cancel.stop_requested()) {
          if (faults_.ignores_cancel) return value("0");
          return failed(kExecutionLimitError, Ending::kCancelled);
        }
        if (request.files ? faults_.ignores_limit_in_cell : faults_.ignores_limit) wait_for_ever();
        if (faults_.limit_is_completed) return failed(kExecutionLimitError, Ending::kCompleted);
        if (faults_.limit_changes_memory) set(get() + 1);
        return failed(faults_.limit_is_an_error_of_its_own ? "TimeoutError" : kExecutionLimitError,
                      Ending::kTimeLimit);
      }
      if (code == "crash") {
        invalid_ = !faults_.crash_keeps_valid;
        return failed(kEngineError, Ending::kCrashed);
      }
      if (code == "random") return value(std::to_string(++random_));
      if (code == "env") return value(variable(request));
      if (code == "show") return value(place_.cwd);
      if (code == "enter") enter("/workspace/conformance");
      if (code == "write") return write("content");
      if (code == "write and fail") {
        const bool writes = !faults_.writes_nothing_before_errors;
        Outcome outcome = writes ? write("failed") : value("0");
        return outcome.error ? outcome : failed("EngineError", Ending::kGuestError);
      }
      if (code == "open") place_.file_open = true;
      if (code == "use" && !place_.file_open) return failed("ValueError", Ending::kGuestError);
      if (code == "inc") set(get() + 1);
      return value(faults_.wrong_value ? "7" : std::to_string(get()));
    }

    std::string variable(const Run& request) {
      if (!request.env.empty()) env_ = request.env.front().second;
      else if (!faults_.env_stays) env_.clear();
      return env_;
    }

    void enter(const std::string& folder) {
      (void)mirror_.files().make_directory(folder, Depth::kAll, 0);
      place_.cwd = folder;
    }

    Outcome write(std::string_view content) {
      const std::string path =
          faults_.writes_elsewhere ? "/workspace/other" : "/workspace/conformance.txt";
      Workspace& files = mirror_.files();
      const bool disabled = files.disabled();
      if (faults_.writes_in_disabled) files.set_disabled(false);
      const auto done = files.write(path, content, FileEncoding::kUtf8, 0);
      files.set_disabled(disabled);
      return done.ok() ? value("0") : failed("PermissionError", Ending::kGuestError);
    }

    std::uint32_t get() const {
      std::uint32_t number = 0;
      std::memcpy(&number, memory_.data(), sizeof number);
      return number;
    }
    void set(std::uint32_t number) { std::memcpy(memory_.data(), &number, sizeof number); }
    [[noreturn]] static void wait_for_ever() {
      for (;;) ::pause();
    }
    Outcome value(std::string text) const {
      Outcome outcome;
      if (faults_.value_is_no_completion) outcome.ending = Ending::kGuestError;
      outcome.value = Value{.text = std::move(text)};
      return outcome;
    }
    static Outcome failed(std::string name, Ending ending) {
      Outcome outcome;
      outcome.ending = ending;
      outcome.error = GuestError{.name = std::move(name), .message = "as asked"};
      return outcome;
    }

    const Faults faults_;
    Bytes memory_;
    bool invalid_ = false;
    bool saved_ = false;
    std::uint64_t random_;
    Mirror mirror_{0};
    Place place_;
    std::string env_;
  };

  /// Another one for each instance, and for each that is made from a snapshot.
  std::uint64_t seed() { return faults_.random_repeats ? 0 : ++made_ * 1000; }

  const Faults faults_;
  engine::EngineInfo info_;
  std::uint64_t made_ = 0;
  Instance shared_{faults_, 0};  // for runs_share_state and env_stays
};

}  // namespace sw::testing
