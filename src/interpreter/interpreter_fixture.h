// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// An Interpreter over an engine without Wasm, and the Sandbox's files: for tests of the rules.

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "interpreter/fake_engine.h"
#include "interpreter/interpreter.h"
#include "protocol/interpreter_routes.h"
#include "storage/memory/memory_storage.h"
#include "wasi/tree_state.h"

namespace sw::interpreter {

using protocol::ExecuteResponse;

inline constexpr char kInc[] = R"({"op":"inc"})";
inline constexpr char kRead[] = R"({"op":"read"})";
inline constexpr char kError[] = R"({"op":"error"})";
inline constexpr char kInvalidate[] = R"({"op":"invalidate"})";
inline constexpr char kFault[] = R"({"op":"fault"})";
inline constexpr char kHold[] = R"({"op":"hold"})";
inline constexpr char kLetGo[] = R"({"op":"let_go"})";
inline constexpr char kWriteA[] = R"({"op":"write","path":"/workspace/a","content":"new"})";
inline constexpr char kWriteAFail[] =
    R"({"op":"write","path":"/workspace/a","content":"bad","then":"error"})";

/// Writes "new" to the file a, then does something else.
inline std::string write_a_then(const std::string& op) {
  return R"({"op":"write","path":"/workspace/a","content":"new","then":")" + op + "\"}";
}

class InterpreterTest : public ::testing::Test {
 protected:
  InterpreterTest() {
    restart();
    EXPECT_EQ(create("c").status, 201);
  }

  /// As another process would find it.
  void restart(const std::string& build = "build-1") {
    interpreter_.reset();
    engine_ = std::make_shared<FakeEngine>(build);
    object_ = storage_->open({.class_name = "interpreter_fake", .id = "key"}, {}).value();
    interpreter_ = Interpreter::open(engine_, *object_, *pool_, clock_, options_).value();
  }

  protocol::Response request(std::string method, std::string path, std::string body = {}) {
    return protocol::serve_interpreter(
        *interpreter_,
        {.method = std::move(method), .path = std::move(path), .body = std::move(body)},
        clock_.now().time_since_epoch().count());
  }
  protocol::Response create(const std::string& id) {
    return request("POST", "/contexts", R"({"id":")" + id + "\"}");
  }
  static boost::json::object json(const protocol::Response& response) {
    return boost::json::parse(response.body).as_object();
  }
  static std::string message(const protocol::Response& response) {
    return boost::json::value_to<std::string>(json(response).at("message"));
  }

  /// The files that the Sandbox has.
  Workspace sandbox_{kWorkspaceLimits, 0};
  std::vector<std::vector<std::string>> asked_;

  RunOutput printed_;  // by the last run

  /// As from a Sandbox in another process.
  std::shared_ptr<const RunFiles> files(WorkspaceManifest manifest) {
    const GetFiles get_files = [this](const std::vector<std::string>& paths) {
      asked_.push_back(paths);
      return workspace_files(sandbox_.remember(), paths);
    };
    return std::make_shared<const RunFiles>(
        RunFiles{.manifest = std::move(manifest), .get_files = get_files});
  }
  Result<ExecuteResponse> ask(const std::string& code, protocol::ExecuteArgs args = {}) {
    if (args.run.context.empty()) args.run.context = "c";
    args.run.code = code;
    if (!args.run.files) args.run.files = files(manifest_of(sandbox_.remember()));
    printed_ = {};
    return interpreter_->execute(args, printed_);
  }
  ExecuteResponse run(const std::string& code, const std::string& id = "c") {
    protocol::ExecuteArgs args;
    args.run.context = id;
    return take(ask(code, args));
  }
  ExecuteResponse run(const std::string& code, AfterError after_error) {
    protocol::ExecuteArgs args;
    args.run.on_error = after_error;
    return take(ask(code, args));
  }
  std::string file_a() {
    const auto file = sandbox_.read("a", FileEncoding::kUtf8);
    return file.ok() ? file->content : "none";
  }
  /// The Sandbox says how many runs it knows of.
  ExecuteResponse run_known(const std::string& code, std::uint64_t known) {
    protocol::ExecuteArgs args;
    args.executions_known = known;
    return take(ask(code, args));
  }
  ExecuteResponse take(Result<ExecuteResponse> answer) {
    if (!answer.ok()) {
      ADD_FAILURE() << answer.error().message;
      return {};
    }
    EXPECT_TRUE(sandbox_.apply_diff(*answer->outcome.files, clock_ns()).ok());
    return *std::move(answer);
  }
  static Error refusal(const Result<ExecuteResponse>& answer) {
    if (!answer.ok()) return answer.error();
    ADD_FAILURE() << "was not refused";
    return {};
  }
  static int status(const Error& error) { return info_of(error.code).http_status; }
  static std::string value(const ExecuteResponse& response) { return response.outcome.value->text; }
  std::uint64_t clock_ns() { return 1; }

  storage::MemoryDisk disk_{storage::Bodies::kTwice};
  std::unique_ptr<storage::Storage> storage_ = storage::open_memory_storage(disk_);
  object::ManualClock clock_{object::Time(std::chrono::milliseconds(1'700'000'000'000))};
  std::unique_ptr<ResidencyPool> pool_ = std::make_unique<ResidencyPool>();
  std::shared_ptr<FakeEngine> engine_;
  std::unique_ptr<storage::ObjectStorage> object_;
  ContextsOptions options_;
  std::unique_ptr<Interpreter> interpreter_;
};

}  // namespace sw::interpreter
