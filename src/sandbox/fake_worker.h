// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A runtime Worker for tests: its Interpreters keep a mirror of the files and count runs, and what a run does is
// the test's.

#include <fmt/format.h>

#include <boost/json.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/messages.h"
#include "sandbox_workers/runtime/worker.h"
#include "sandbox_workers/workspace/workspace.h"

namespace sw::sandbox {

class FakeWorker final : public runtime::Worker {
 public:
  explicit FakeWorker(std::string language, bool contexts = true)
      : info{{"language", language}, {"engine", "Fake"}, {"contexts", contexts}, {"protocol", 1}} {}

  struct Interpreter {
    Workspace mirror{wasi::TreeLimits{}, 0};
    std::map<std::string, std::uint64_t> executions;  // by context
  };

  // What tests look at and set.
  boost::json::value info;
  std::vector<runtime::Request> requests;
  std::vector<runtime::ExecuteArgs> runs;
  std::vector<std::vector<std::string>> asked_for;  // paths of each get_files call
  std::map<std::string, Interpreter> interpreters;  // by key
  std::optional<Error> unreachable;
  std::optional<runtime::ErrorBody> refuse;
  /// Called in a run, with the mirror.
  std::function<void(Workspace& files, runtime::ExecuteResponse& response)> run;

  Result<runtime::Response> fetch(const runtime::Request& request) override {
    requests.push_back(request);
    if (unreachable) return *unreachable;
    if (request.path == "/interpreter") return runtime::json_response(200, info);
    if (request.path == "/execute") return execute_once(request);
    return of_interpreter(request);
  }

  Result<runtime::Answer<runtime::ExecuteResponse>> execute_in_context(std::string_view key,
                                                                       const runtime::ExecuteArgs& args,
                                                                       const runtime::GetFiles& get_files,
                                                                       wasi::OutputSink& output) override {
    runs.push_back(args);
    if (unreachable) return *unreachable;
    if (refuse) return runtime::Answer<runtime::ExecuteResponse>(*refuse);
    Interpreter& interpreter = interpreters[std::string(key)];
    const auto known = interpreter.executions.find(args.context_id);
    if (known == interpreter.executions.end()) {
      return runtime::Answer<runtime::ExecuteResponse>(runtime::context_not_found(args.context_id));
    }
    if (auto failed = reconcile(interpreter, args, get_files)) {
      return runtime::Answer<runtime::ExecuteResponse>(*std::move(failed));
    }
    const wasi::TreeState before = interpreter.mirror.remember();
    runtime::ExecuteResponse response;
    response.cwd = "/workspace";
    response.outcome.value = engine::Value{.text = args.code};
    (void)output.write(wasi::Stream::kStdout, as_bytes("ran\n"));
    if (run) run(interpreter.mirror, response);
    if (response.outcome.error && args.after_error != runtime::AfterError::kKeep) {
      (void)before.restore(*interpreter.mirror.tree(), 0);
    }
    response.workspace = interpreter.mirror.changes_since(before);
    response.executions = ++known->second;
    return runtime::Answer<runtime::ExecuteResponse>(std::move(response));
  }

 private:
  std::optional<runtime::ErrorBody> reconcile(Interpreter& interpreter, const runtime::ExecuteArgs& args,
                                              const runtime::GetFiles& get_files) {
    auto missing = interpreter.mirror.apply_sync(args.workspace, {}, 0);
    if (missing.ok() && !missing->empty()) {
      asked_for.push_back(*missing);
      missing = interpreter.mirror.apply_sync(args.workspace, get_files(*missing), 0);
    }
    if (missing.ok() && missing->empty()) return std::nullopt;
    return runtime::internal_error(
        fmt::format("Sandbox did not provide {} workspace file(s)", missing.ok() ? missing->size() : 0));
  }

  Result<runtime::Response> execute_once(const runtime::Request& request) {
    return runtime::json_response(200, boost::json::object{{"ran", boost::json::parse(request.body)}});
  }

  Result<runtime::Response> of_interpreter(const runtime::Request& request) {
    constexpr std::string_view kPrefix = "/interpreters/";
    const std::string rest = request.path.substr(kPrefix.size());
    const std::string key = rest.substr(0, rest.find('/'));
    const std::string sub = rest.substr(key.size());
    Interpreter& interpreter = interpreters[key];
    if (request.method == "DELETE" && sub.empty()) {
      interpreters.erase(key);
      return runtime::json_response(200, boost::json::object{{"success", true}});
    }
    if (request.method == "POST" && sub == "/contexts") {
      const boost::json::value body = boost::json::parse(request.body);
      const std::string id(body.at("id").as_string());
      if (!interpreter.executions.emplace(id, 0).second) {
        return runtime::error_response(
            runtime::validation_failed(fmt::format("Code context '{}' already exists", id)), 0);
      }
      return runtime::json_response(201, body);
    }
    constexpr std::string_view kContexts = "/contexts/";
    const std::string tail = sub.substr(kContexts.size());
    const std::string id = runtime::percent_decoded(tail.substr(0, tail.find('/')));
    if (request.method == "DELETE" && tail.find('/') == std::string::npos) {
      interpreter.executions.erase(id);
      return runtime::json_response(200, boost::json::object{{"success", true}});
    }
    return of_versions(request, interpreter, id, tail.substr(tail.find('/')));
  }

  static Result<runtime::Response> of_versions(const runtime::Request& request, Interpreter& interpreter,
                                               const std::string& id, const std::string& what) {
    if (!interpreter.executions.contains(id)) return runtime::error_response(runtime::context_not_found(id), 0);
    if (what == "/fork") {
      const std::string other(boost::json::parse(request.body).at("id").as_string());
      interpreter.executions.emplace(other, interpreter.executions[id]);
      return runtime::json_response(201, {{"id", other}, {"cwd", "/workspace"}});
    }
    if (request.method == "GET") {
      return runtime::json_response(200, {{"checkpoints", boost::json::array{{{"name", "a"}, {"takenAt", 5}}}}});
    }
    return runtime::json_response(200, {{"success", true}, {"executions", interpreter.executions[id]}});
  }
};

}  // namespace sw::sandbox
