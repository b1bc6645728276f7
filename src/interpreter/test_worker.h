// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A runtime Worker with one Interpreter, and the part of a Sandbox that a test needs: the files.

#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>

#include "sandbox_workers/engine/all_languages.h"
#include "sandbox_workers/engine/machine.h"
#include "sandbox_workers/interpreter/runtime_worker.h"

namespace sw::interpreter {

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

  /// `sandbox_files` outlive it.
  TestWorker(std::shared_ptr<engine::Engine> engine, storage::Storage& storage,
             Workspace& sandbox_files, RuntimeOptions options = {})
      : files(sandbox_files) {
    options.storage = &storage;
    worker_ = define_interpreter_runtime(std::move(engine), options).value();
  }

  protocol::Response request(const std::string& method, const std::string& path,
                             const std::string& body = {}) {
    return worker_->fetch({.method = method, .path = "/interpreters/key" + path, .body = body});
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
    protocol::ExecuteArgs args;
    args.context_id = id;
    args.code = code;
    args.limits = limits;
    args.after_error = after_error;
    args.workspace = files.manifest();
    printed = {};
    auto answer = worker_->interpreter("key").value()->execute(
        args,
        [this](const std::vector<std::string>& paths) {
          std::vector<WorkspaceFile> found;
          for (const std::string& path : paths) {
            if (auto file = files.read_bytes(path); file.ok()) found.push_back(*std::move(file));
          }
          return found;
        },
        printed);
    if (!answer.ok()) {
      protocol::ExecuteResponse response;
      response.outcome.ending = Ending::kCrashed;
      response.outcome.error = GuestError{.name = answer.error().message,
                                          .message = std::string(code_name(answer.error().code)),
                                          .traceback = {},
                                          .line_number = {}};
      return response;
    }
    (void)files.apply_diff(answer->workspace, files.remember(), 1);
    return *std::move(answer);
  }

  Workspace& files;
  RunOutput printed;                           ///< by the last run
  AfterError after_error = AfterError::kKeep;  ///< of the next runs

 private:
  std::shared_ptr<InterpreterWorker> worker_;
};

}  // namespace sw::interpreter
