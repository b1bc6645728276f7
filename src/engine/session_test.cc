// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Sessions with a guest of a few lines that needs no interpreter.

#include "engine/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "engine/watchdog.h"
#include "sandbox_workers/base/files.h"
#include "sandbox_workers/engine/language.h"
#include "sandbox_workers/engine/run.h"
#include "sandbox_workers/wasm/guest_thread.h"

namespace sw::engine {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

sw::Run request_of(std::string code) {
  sw::Run request;
  request.code = std::move(code);
  return request;
}

constexpr std::string_view kToyGuest = R"((module
  (memory (export "memory") 1)
  (global $depth (mut i32) (i32.const 0))
  (func (export "count") (result i32)
    (i32.store (i32.const 0) (i32.add (i32.const 1) (i32.load (i32.const 0)))) (i32.load (i32.const 0)))
  (func (export "spin") (result i32)
    (loop $l (if (i32.load (i32.const 8)) (then (return (i32.const -2)))) (br $l)) (unreachable))
  (func (export "spin_for_ever") (result i32) (loop $l (drop (i32.load (i32.const 8))) (br $l)) (unreachable))
  (func (export "long_error") (result i32) (i32.const -3))
  (func (export "trap") (result i32) unreachable)
  (func (export "grow") (result i32) (memory.grow (i32.const 20000)))))";

/// Its code is the name of one of the exports above.
class ToyGuest final : public Guest {
 public:
  using Guest::Guest;
  Result<void> boot(BakeFacts&) override { return {}; }
  Result<void> bind(const BakeFacts&) override { return {}; }
  Result<void> after_restore() override {
    if (renew.empty()) return {};
    SW_TRY(const auto function, instance().function<std::int32_t()>(renew));
    SW_TRY(const std::int32_t result, instance().call(function));
    (void)result;
    return {};
  }
  Result<Reply> evaluate(const sw::Run& request, std::string_view) override {
    SW_CHECK_OK(instance().charge(takes));
    SW_TRY(const auto function, instance().function<std::int32_t()>(request.code));
    SW_TRY(const std::int32_t result, instance().call(function));
    Reply reply;
    if (result == -1) reply.error = GuestError{"MemoryError", "", {}, {}};
    else if (result == -3)
      reply.error = GuestError{"E",
                               std::string(1 << 20, 'm'),
                               std::vector<std::string>(2000, std::string(10000, 't')),
                               {}};
    else if (result == -2) reply.error = GuestError{"Interrupted", "", {"line 1"}, {}};
    else reply.value = Value{Value::Kind::kText, std::to_string(result)};
    return reply;
  }
  void soft_stop() override {
    instance().while_running(
        [](wasm::MemoryView memory) { (void)memory.store<std::uint32_t>(8, 1); });
  }
  bool is_out_of_memory(const GuestError& error) const override {
    return error.name == "MemoryError";
  }

  std::uint64_t takes = 0;  // of the host's memory, for a cell
  std::string renew;        // the export that is called after a restore; none if empty
};

struct SessionTest : ::testing::Test {
  std::unique_ptr<wasm::Runtime> engine = wasm::Runtime::create({}).value();
  Watchdog watchdog;
  wasi::SystemClocks clocks;
  std::shared_ptr<wasm::InstancePre> pre;

  SessionTest() {
    const auto prepared = wasm::prepare_module(wasm::wat_to_wasm(kToyGuest).value()).value();
    const auto module = wasm::Module::compile(*engine, prepared.wasm).value();
    const auto folder = TemporaryDirectory::create(fs::temp_directory_path(), "sw-toy-").value();
    EXPECT_TRUE(wasm::Image::write(folder.path() / "image", Bytes(wasm::kWasmPageBytes)).ok());
    const wasm::Linker linker(*engine);
    pre = wasm::InstancePre::create(*engine, linker, module, prepared.facts,
                                    wasm::Image::open(folder.path() / "image").value())
              .value();
  }

  std::unique_ptr<Session> start(std::string renew = "") {
    auto guest = std::make_unique<ToyGuest>(wasi::standard_layout().build(), clocks);
    guest->renew = std::move(renew);
    auto instance = pre->instantiate(*guest, {}).value();
    guest->set_instance(*instance);
    return Session::create(std::move(guest), std::move(instance), watchdog).value();
  }

  Outcome execute(Session& session, const sw::Run& request) {
    Result<Outcome> outcome = Error{ErrorCode::kInternal, "not run", 0};
    RunOutput sink;
    EXPECT_TRUE(wasm::run_on_guest_thread(engine->options(), [&] {
                  outcome = session.execute(request, sink);
                }).ok());
    EXPECT_TRUE(outcome.ok()) << (outcome.ok() ? "" : outcome.error().message);
    return *std::move(outcome);
  }
};

TEST_F(SessionTest, StateLastsOverCellsAndNotOverReset) {
  const auto session = start();
  EXPECT_EQ(execute(*session, request_of("count")).value->text, "1");
  EXPECT_EQ(execute(*session, request_of("count")).value->text, "2");
  EXPECT_EQ(session->reset().verdict, wasm::KeepVerdict::kKept);
  EXPECT_EQ(execute(*session, request_of("count")).value->text, "1");
}

TEST_F(SessionTest, ASoftStopKeepsTheState) {
  const auto session = start();
  execute(*session, request_of("count"));
  sw::Run request = request_of("spin");
  request.limits.wall_max = 20ms;
  request.limits.grace = 20s;
  const Outcome outcome = execute(*session, request);
  EXPECT_EQ(outcome.ending, Ending::kTimeLimit);
  EXPECT_EQ(outcome.error->name, kExecutionLimitError);
  EXPECT_THAT(outcome.error->message, HasSubstr("0.02 s"));
  EXPECT_THAT(outcome.error->traceback, ElementsAre("line 1"));
  EXPECT_FALSE(session->invalid());
  EXPECT_EQ(execute(*session, request_of("count")).value->text, "2");
}

TEST_F(SessionTest, AGuestThatDoesNotListenIsStoppedByForce) {
  const auto session = start();
  sw::Run request = request_of("spin_for_ever");
  request.limits.wall_max = 10ms;
  request.limits.grace = 10ms;
  EXPECT_EQ(execute(*session, request).ending, Ending::kTimeLimit);
  EXPECT_TRUE(session->invalid());
  EXPECT_EQ(session->reset().verdict, wasm::KeepVerdict::kEndedAbnormally);
}

TEST_F(SessionTest, WhatTheGuestDoesAfterARestoreIsUnderTheLimitsToo) {
  const auto session = start("spin_for_ever");
  sw::Run request = request_of("count");
  request.limits.wall_max = 10ms;
  request.limits.grace = 10ms;
  EXPECT_EQ(execute(*session, request).ending, Ending::kTimeLimit);
  EXPECT_TRUE(session->invalid());
}

TEST_F(SessionTest, ATrapAfterARestoreIsACrash) {
  const auto session = start("trap");
  EXPECT_EQ(execute(*session, request_of("count")).ending, Ending::kCrashed);
}

TEST_F(SessionTest, MemoryThatTheHostTakesForARunIsGivenBackAfterIt) {
  const auto session = start();
  sw::Run request = request_of("count");
  request.limits.memory_bytes_max = 2 * wasm::kWasmPageBytes;
  auto& guest = static_cast<ToyGuest&>(session->guest());
  guest.takes = (1 << 20) + 2 * wasm::kWasmPageBytes;
  EXPECT_EQ(execute(*session, request).ending, Ending::kMemoryLimit);
  EXPECT_TRUE(session->invalid());

  const auto another = start();
  static_cast<ToyGuest&>(another->guest()).takes = (1 << 20) + wasm::kWasmPageBytes;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(execute(*another, request).ending, Ending::kCompleted);
}

TEST_F(SessionTest, CancellingEndsARun) {
  const auto session = start();
  std::stop_source source;
  source.request_stop();
  sw::Run request = request_of("spin");
  request.cancel = source.get_token();
  EXPECT_EQ(execute(*session, request).ending, Ending::kCancelled);
}

TEST_F(SessionTest, ATrapIsACrashAndEndsTheSession) {
  const auto session = start();
  const Outcome outcome = execute(*session, request_of("trap"));
  EXPECT_EQ(outcome.ending, Ending::kCrashed);
  EXPECT_EQ(outcome.error->name, kEngineError);
  EXPECT_TRUE(session->invalid());
}

TEST_F(SessionTest, RefusedMemoryIsTheMemoryLimit) {
  const auto session = start();
  const Outcome outcome = execute(*session, request_of("grow"));
  EXPECT_EQ(outcome.ending, Ending::kMemoryLimit);
  EXPECT_EQ(outcome.error->name, "MemoryError");
  EXPECT_FALSE(session->invalid());
}

TEST_F(SessionTest, AnOverlongErrorIsCut) {
  const auto session = start();
  const Outcome outcome = execute(*session, request_of("long_error"));
  EXPECT_LT(outcome.error->message.size(), kErrorTextBytesMax + 100);
  EXPECT_THAT(outcome.error->message, HasSubstr("more bytes"));
  EXPECT_EQ(outcome.error->traceback.size(), static_cast<std::size_t>(kTracebackLinesMax));
  EXPECT_THAT(outcome.error->traceback[kTracebackLinesMax / 2], HasSubstr("1501 more lines"));
  EXPECT_LT(outcome.error->traceback.back().size(), kErrorLineBytesMax + 100);
}

TEST_F(SessionTest, AnOverlongValueIsALimit) {
  const auto session = start();
  sw::Run request = request_of("count");
  request.limits.result_bytes_max = 0;
  EXPECT_EQ(execute(*session, request).ending, Ending::kResultLimit);
  request.limits.result_bytes_max = 1;
  EXPECT_EQ(execute(*session, request).ending, Ending::kCompleted);
}

}  // namespace
}  // namespace sw::engine
