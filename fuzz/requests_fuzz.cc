// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Requests to a sandbox and to an Interpreter, over storage in memory and with engines that are not
// there. Every one is answered, with JSON, and none of them is the host's fault.

#include "fuzz/fuzz.h"
#include "fuzz/requests.h"
#include "interpreter/fake_engine.h"
#include "protocol/interpreter_routes.h"
#include "sandbox/fake_worker.h"
#include "sandbox/names.h"
#include "storage/memory/memory_storage.h"

namespace sw::fuzz {
namespace {

constexpr int kRequestsMax = 20;

void check(const protocol::Request& request, const protocol::Response& response) {
  const json::object answer = check_answered(request, response);
  // The protocol has 500 for errors of files that have no code of their own.
  const bool of_files = answer.contains("code") && answer.at("code") == "FILESYSTEM_ERROR";
  require((response.status >= 200 && response.status < 500) || of_files,
          "it is not the host's fault:",
          request.method + " " + request.path + " " + request.body + " -> " + response.body);
}

void ask_sandbox(Choices& choices) {
  storage::MemoryDisk disk;
  const auto storage = storage::open_memory_storage(disk);
  const auto object =
      storage->open(sandbox::object_name("demo").value(), sandbox::Sandbox::schema()).value();
  object::ManualClock clock(kStart);
  const protocol::Bindings bindings{
      {"JAVASCRIPT", std::make_shared<sandbox::FakeWorker>("javascript")},
      {"RUBY", std::make_shared<sandbox::FakeWorker>("ruby", false)}};
  std::optional<sandbox::Sandbox> one;
  one.emplace(*object, bindings, clock, sandbox::SandboxOptions{});
  for (int i = 0; i < kRequestsMax && !choices.empty(); ++i) {
    // Now and then it has to be read from its storage again.
    if (choices.below(8) == 7) one.emplace(*object, bindings, clock, sandbox::SandboxOptions{});
    const protocol::Request request = any_request(choices);
    check(request, one->fetch(request));
  }
}

void ask_interpreter(Choices& choices) {
  storage::MemoryDisk disk;
  const auto storage = storage::open_memory_storage(disk);
  const auto object = storage->open({.class_name = "interpreter_fake", .id = "key"}, {}).value();
  object::ManualClock clock(kStart);
  const auto engine = std::make_shared<interpreter::FakeEngine>();
  const auto pool = std::make_shared<interpreter::ResidencyPool>();
  Workspace files(kWorkspaceLimits, 0);
  auto server = interpreter::InterpreterServer::open(engine, *object, pool, clock, {}).value();
  for (int i = 0; i < kRequestsMax && !choices.empty(); ++i) {
    if (choices.below(8) == 7) {
      server.reset();
      server = interpreter::InterpreterServer::open(engine, *object, pool, clock, {}).value();
    }
    if (choices.coin()) {
      run_cell(*server, files, choices);
      continue;
    }
    const protocol::Request request = any_request(choices);
    check(request, protocol::serve_interpreter(*server, request, server->now_ms()));
  }
}

}  // namespace

SW_FUZZ(requests) {
  Choices choices(input);
  if (choices.coin()) ask_sandbox(choices);
  else ask_interpreter(choices);
}

}  // namespace sw::fuzz
