// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// An engine without Wasm, for tests of the rules: its memory is a counter, its code is JSON {"op":
// …}, its value always the counter.
//
//   inc        adds 1                          chdir      {cwd}
//   read                                       write      {path, content}
//   error      adds 1, then an error           limit      adds 1, then a limit; the instance goes
//   on
//   invalidate adds 1, and the instance ends   hold, let_go   whether a snapshot would hold
//   everything
//   exit       adds 1, then exits with 3       wait       until it is cancelled
//   fault      the engine itself fails         heavy, light   whether a snapshot is too large to save
//
// Any of them may have `then`, the op to go on with. The traceback of an error is the cell's name.

#include <algorithm>
#include <atomic>
#include <boost/json.hpp>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "sandbox_workers/engine/engine.h"
#include "sandbox_workers/wasi/clocks.h"
#include "sandbox_workers/wasi/file_system.h"
#include "sandbox_workers/workspace/mirror.h"
#include "snapshot/pack.h"

namespace sw::interpreter {

class FakeSession final : public engine::SessionInstance {
 public:
  explicit FakeSession(std::atomic<int>& alive)
      : alive_(alive), memory_(kMemoryBytes), files_(wasi::standard_layout().build(), clocks_) {
    files_.mount(wasi::kWorkspaceMount, mirror_.tree());
    ++alive_;
  }
  ~FakeSession() override { --alive_; }

  static constexpr std::size_t kMemoryBytes = 131'072;

  std::span<std::byte> memory() { return memory_; }
  bool invalid() const override { return invalid_; }
  bool can_snapshot() const override { return !invalid_ && !held_; }

  Result<engine::SessionSnapshot> snapshot() override {
    engine::SessionSnapshot snapshot;
    snapshot.memory = std::make_unique<SpanPageSource>(memory_);
    for (std::size_t at = 0; at < memory_.size(); at += kPageBytes) {
      if (!std::ranges::equal(BytesView(memory_).subspan(at, kPageBytes),
                              BytesView(told_).subspan(at, kPageBytes)))
        snapshot.changed.push_back({at, at + kPageBytes});
    }
    told_ = memory_;
    if (heavy_) snapshot.extra.resize(snapshot::kHostTablesBytesMax + 1);
    return snapshot;
  }

  Result<Outcome> execute(const Run& request, RunEvents& output) override {
    SW_CHECK_OK(mirror_.follow(*request.files, 1));
    if (request.ends_context) return end(output);
    if (!std::exchange(begun_, true) && !request.cwd.empty()) cwd_ = request.cwd;
    const boost::json::value code = boost::json::parse(request.code);
    const boost::json::object& op = code.as_object();
    const auto text = [&](const char* name) {
      return boost::json::value_to<std::string>(op.at(name));
    };
    Outcome outcome;
    perform(text("op"), op, request, output, outcome);
    if (op.contains("then")) perform(text("then"), op, request, output, outcome);
    if (failed_) return Error{ErrorCode::kInternal, "unknown op", 0};
    if (outcome.error) outcome.error->traceback = {request.file_name};
    outcome.value = Value{.text = std::to_string(count(0))};
    outcome.cwd = cwd_;
    outcome.files = mirror_.changes();
    return outcome;
  }

  /// Runs of `wait` that have begun, in this process.
  static std::atomic<int>& waiting() {
    static std::atomic<int> count = 0;
    return count;
  }

 private:
  /// Its exit handler prints the counter, and writes it into a file.
  Result<Outcome> end(RunEvents& events) {
    const std::string text = "ended at " + std::to_string(count(0));
    (void)events.write(wasi::Stream::kStdout, as_bytes(text));
    (void)files_.write_file("/workspace/ended", as_bytes(text));
    invalid_ = true;
    Outcome outcome;
    outcome.files = mirror_.changes();
    return outcome;
  }
  void perform(const std::string& what, const boost::json::object& op, const Run& request,
               RunEvents& output, Outcome& outcome) {
    const auto text = [&](const char* name) {
      return boost::json::value_to<std::string>(op.at(name));
    };
    if (what == "inc" || what == "error" || what == "limit" || what == "invalidate" ||
        what == "exit")
      count(1);
    if (what == "fault") failed_ = true;
    if (what == "hold" || what == "let_go") held_ = what == "hold";
    if (what == "heavy" || what == "light") heavy_ = what == "heavy";
    if (what == "invalidate") invalid_ = true;
    if (what == "chdir") cwd_ = text("cwd");
    if (what == "print") (void)output.write(wasi::Stream::kStdout, as_bytes(text("text")));
    if (what == "write") {
      const wasi::Errno written = files_.write_file(text("path"), as_bytes(text("content")));
      if (written != wasi::Errno::kSuccess)
        outcome.error = error(std::string(wasi::errno_name(written)));
    }
    if (what == "wait") {
      ++waiting();
      while (!request.cancel.stop_requested()) std::this_thread::yield();
      outcome.ending = Ending::kCancelled;
      outcome.error = error(kExecutionLimitError);
    }
    if (what == "error" || what == "invalidate") outcome.error = error("EngineError");
    if (what == "limit") outcome.error = error(kExecutionLimitError);
    if (what == "exit") {
      outcome.ending = Ending::kExited;
      outcome.exit_code = 3;
    }
  }

  static GuestError error(std::string name) {
    return {.name = std::move(name), .message = "asked for", .traceback = {}, .line_number = {}};
  }
  std::uint32_t count(std::uint32_t by) {
    std::uint32_t value = 0;
    std::memcpy(&value, memory_.data(), sizeof value);
    value += by;
    std::memcpy(memory_.data(), &value, sizeof value);
    return value;
  }

  std::string cwd_ = "/workspace";
  bool begun_ = false;
  std::atomic<int>& alive_;
  Bytes memory_;
  Bytes told_ = Bytes(kMemoryBytes);  // the memory at the last snapshot
  bool invalid_ = false;
  bool held_ = false;
  bool heavy_ = false;
  bool failed_ = false;
  Mirror mirror_{1};
  wasi::SystemClocks clocks_;
  wasi::FileSystem files_;
};

class FakeEngine final : public engine::Engine {
 public:
  explicit FakeEngine(std::string build = "build-1")
      : info_{.language = "fake",
              .engine_name = "Fake 1",
              .build = std::move(build),
              .limits = {.memory_bytes = 1},
              .aliases = {"fk"}} {}

  const engine::EngineInfo& info() const override { return info_; }
  bool has_sessions() const override { return sessions; }
  Result<Outcome> run(const Run& request, RunEvents& output) override {
    if (request.code == "fault") return engine::ExecutionLimitError("out of fuel");
    if (during_run) during_run(request);
    (void)output.write(wasi::Stream::kStdout, as_bytes(request.code + "\n" + input_of(request)));
    Outcome outcome;
    outcome.value = Value{.text = request.env.empty() ? "" : request.env.front().second};
    return outcome;
  }
  Result<std::unique_ptr<engine::SessionInstance>> boot() override {
    if (during_boot) during_boot();
    if (fail_boot) return Error{ErrorCode::kUnavailable, "no more memory", 0};
    return std::unique_ptr<engine::SessionInstance>(std::make_unique<FakeSession>(alive));
  }
  Result<std::unique_ptr<engine::SessionInstance>> restore(
      engine::SnapshotSource& source) override {
    if (during_boot) during_boot();
    auto session = std::make_unique<FakeSession>(alive);
    SpanPageSink memory(session->memory());
    SW_TRY(const BytesView extra, source.fill(memory, {}));
    if (!extra.empty()) return Error{ErrorCode::kCorrupt, "there should be nothing else", 0};
    return std::unique_ptr<engine::SessionInstance>(std::move(session));
  }

  bool sessions = true;
  std::function<void()> during_boot = {};
  bool fail_boot = false;
  std::function<void(const Run&)> during_run = {};  ///< in a run outside of contexts
  std::atomic<int> alive = 0;                       ///< instances

 private:
  static std::string input_of(const Run& request) {
    std::string text;
    Bytes buffer(100);
    while (request.input) {
      const auto count = request.input->read(buffer);
      if (!count.ok() || *count == 0) break;
      text += as_text(BytesView(buffer).first(*count));
    }
    return text;
  }

  engine::EngineInfo info_;
};

}  // namespace sw::interpreter
