// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Requests to a sandbox and to an Interpreter, over storage in memory and with engines that are not
// there. Every one is answered, with JSON, and none of them is the host's fault.

#include "fuzz/requests.h"

#include "fuzz/fuzz.h"

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
  AnySandbox sandbox;
  for (int i = 0; i < kRequestsMax && !choices.empty(); ++i) {
    // Now and then it has to be read from its storage again.
    if (choices.below(8) == 7) sandbox.open();
    const protocol::Request request = any_request(choices);
    check(request, sandbox.one->fetch(request));
  }
}

void ask_interpreter(Choices& choices) {
  AnyInterpreter interpreter;
  Workspace files(kWorkspaceLimits, 0);
  require(interpreter.open(), "it is opened");
  for (int i = 0; i < kRequestsMax && !choices.empty(); ++i) {
    if (choices.below(8) == 7) require(interpreter.open(), "it is opened again");
    if (choices.coin()) {
      run_cell(*interpreter.one, files, choices);
      continue;
    }
    const protocol::Request request = any_request(choices);
    check(request, interpreter.fetch(request));
  }
}

}  // namespace

SW_FUZZ(requests) {
  Choices choices(input);
  if (choices.coin()) ask_sandbox(choices);
  else ask_interpreter(choices);
}

}  // namespace sw::fuzz
