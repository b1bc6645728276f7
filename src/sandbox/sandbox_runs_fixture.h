// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A sandbox whose runs a test starts, holds up and ends.

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/thread_safety.h"
#include "sandbox/fake_worker.h"
#include "sandbox/names.h"
#include "sandbox/sandbox.h"
#include "storage/memory/memory_storage.h"

namespace sw::sandbox {

inline const Error kDiskFull{ErrorCode::kUnavailable, "disk full", 0};

/// A run that was started.
struct Started {
  RunOutput output;
  std::promise<Result<Finished>> promise;
};
using Future = std::future<Result<Finished>>;

inline ErrorCode code_of(Future& run) {
  const auto finished = run.get();
  EXPECT_FALSE(finished.ok());
  return finished.ok() ? ErrorCode{} : finished.error().code;
}

struct SandboxRunsTest : ::testing::Test {
  static constexpr object::Time kStart{std::chrono::milliseconds(1'700'000'000'000)};

  std::shared_ptr<FakeWorker> python = std::make_shared<FakeWorker>("python");
  std::shared_ptr<FakeWorker> ruby = std::make_shared<FakeWorker>("ruby", false);
  RunOutput printed_at_end;  // by exit handlers
  Gate gate;                 // runs whose code begins with "hold", by their first line
  Gate calls;                // what `hold_calls` says
  std::string hold_calls = "none";
  object::ManualClock clock{kStart};
  executor::GuestPool guests{{.slots = 4, .stack_bytes = std::size_t{1} << 20}};
  SandboxParts parts{
      .bindings = {{"PYTHON", python}, {"RUBY", ruby}}, .clock = clock, .guests = guests};
  storage::MemoryDisk disk{storage::Bodies::kTwice};
  std::unique_ptr<storage::Storage> storage = storage::open_memory_storage(disk);
  const storage::ObjectName name = object_name("demo").value();
  std::unique_ptr<storage::ObjectStorage> object = storage->open(name, Sandbox::schema()).value();
  std::optional<Sandbox> sandbox_;
  Mutex opening_;  // held while it is made

  SandboxRunsTest() {
    const auto hold = [this](const sw::Run& run) {
      const std::string first = run.code.substr(0, run.code.find('\n'));
      if (first.starts_with("hold")) gate.pass(first, run.cancel);
      if (first.starts_with("stubborn")) gate.pass(first);
    };
    python->before_run = hold;
    ruby->before_run = hold;
    python->before_call = [this](const std::string& call) {
      if (call.starts_with(hold_calls)) calls.pass(hold_calls);
    };
  }
  ~SandboxRunsTest() override {
    gate.open();
    calls.open();
    guests.shut_down();
  }

  Sandbox& sandbox() {
    const MutexLock lock(opening_);
    if (!sandbox_) sandbox_.emplace(*object, parts);
    return *sandbox_;
  }
  void restart() {
    sandbox_.reset();
    object = storage->open(name, Sandbox::schema()).value();
  }
  void make(const std::string& id) {
    ASSERT_TRUE(sandbox().create_context({.binding = "PYTHON", .id = id}).ok());
  }
  Future start(sw::Run run, const std::string& binding = "") {
    const auto started = std::make_shared<Started>();
    sandbox().start(std::move(run), binding, started->output, [started](Result<Finished> finished) {
      started->promise.set_value(std::move(finished));
    });
    return started->promise.get_future();
  }
  Future start_in(const std::string& context, const std::string& code) {
    return start({.code = code, .context = context});
  }
  /// A run that is held up when this returns.
  Future hold(const std::string& context, const std::string& first, const std::string& code = "") {
    Future run = start_in(context, first + "\n" + code);
    gate.wait_for(first);
    return run;
  }
  Result<Finished> run(const std::string& context, const std::string& code) {
    return start_in(context, code).get();
  }
  void write(const char* path, const char* text) {
    ASSERT_TRUE(sandbox()
                    .with_files(FileUse::kChange, "file.write", path,
                                [&](Workspace& files, std::uint64_t now) {
                                  return files.write(path, text, FileEncoding::kUtf8, now);
                                })
                    .ok());
  }
  std::string read(const char* path) {
    const auto text = sandbox().with_files(FileUse::kLook, "file.read", path,
                                           [&](const Workspace& files, std::uint64_t) {
                                             return files.read(path, FileEncoding::kUtf8);
                                           });
    return text.ok() ? text->content : std::string(code_name(text.error().code));
  }
  std::vector<std::string> context_ids() {
    std::vector<std::string> ids;
    const auto records = sandbox().contexts();
    if (!records.ok()) return {records.error().message};
    for (const ContextRecord& record : *records) ids.push_back(record.id);
    return ids;
  }
  std::string seen_by(const std::string& context, const char* path) {
    const auto text =
        python->interpreters.begin()->second.mirrors.at(context).read(path, FileEncoding::kUtf8);
    return text.ok() ? text->content : std::string(code_name(text.error().code));
  }
};

}  // namespace sw::sandbox
