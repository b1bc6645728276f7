// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Requests for the targets that ask sandboxes and Interpreters.

#include <boost/json.hpp>

#include "fuzz/fuzz.h"
#include "interpreter/fake_engine.h"
#include "interpreter/interpreter.h"
#include "interpreter/residency_pool.h"
#include "protocol/interpreter_routes.h"
#include "sandbox/fake_worker.h"
#include "sandbox/names.h"
#include "sandbox/sandbox.h"
#include "sandbox_workers/base/utf8.h"
#include "storage/memory/memory_storage.h"
#include "wasi/tree_state.h"

namespace sw::fuzz {

namespace json = boost::json;

constexpr object::Time kStart{std::chrono::milliseconds(1'700'000'000'123)};

inline std::string any_id(Choices& choices) {
  static constexpr const char* kIds[] = {"a", "b", "c", "%61", "a%2fb", "..", "\xc3\xbc", ""};
  const std::size_t which = choices.below(10);
  return which < std::size(kIds) ? kIds[which] : choices.text(140);
}

inline std::string any_path(Choices& choices) {
  static constexpr const char* kPaths[] = {"/",      "/contexts", "/execute", "/env",
                                           "/files", "/files",    "/files",   "/execute"};
  static constexpr const char* kOfContext[] = {
      "", "/fork", "/undo", "/restore", "/checkpoints", "/checkpoints/", "/", "/x"};
  const std::size_t which = choices.below(18);
  if (which < std::size(kPaths)) return kPaths[which];
  if (which == 17) return "/" + choices.text(30);
  const std::string what = kOfContext[choices.below(std::size(kOfContext))];
  std::string path = "/contexts/" + any_id(choices) + what;
  if (what == "/checkpoints/") path += any_id(choices);
  return path;
}

inline std::string file_body(Choices& choices) {
  static constexpr const char* kOps[] = {"read",   "write", "mkdir", "delete",
                                         "rename", "move",  "list",  "exists"};
  static constexpr const char* kPaths[] = {
      "/workspace/a", "a", "b/c", "/workspace", "b", "../x", ".", "/workspace/b/.."};
  json::object body{{"op", kOps[choices.below(std::size(kOps))]},
                    {"path", kPaths[choices.below(std::size(kPaths))]},
                    {"newPath", kPaths[choices.below(std::size(kPaths))]},
                    {"recursive", choices.coin()},
                    {"force", choices.coin()}};
  if (choices.coin()) body["encoding"] = choices.coin() ? "base64" : "utf-8";
  if (choices.coin()) body["content"] = to_valid_utf8(choices.text(20));
  return json::serialize(body);
}

inline std::string any_body(Choices& choices) {
  const std::string id = json::serialize(json::string(to_valid_utf8(any_id(choices))));
  switch (choices.below(9)) {
    case 0: return "{\"binding\":\"JAVASCRIPT\",\"id\":" + id + "}";
    case 1: return "{\"binding\":\"RUBY\",\"code\":" + id + "}";
    case 2: return "{\"contextId\":" + id + ",\"code\":\"1\",\"envVars\":{\"A\":null}}";
    case 3: return "{\"id\":" + id + "}";
    case 4: return "{\"name\":" + id + "}";
    case 5: return "{\"runs\":" + std::to_string(choices.below(4)) + "}";
    case 6: return file_body(choices);
    case 7: return "{\"envVars\":{\"A\":" + id + "}}";
    default: return choices.text(200);
  }
}

inline protocol::Request any_request(Choices& choices) {
  static constexpr const char* kMethods[] = {"POST", "GET", "DELETE", "POST", "PUT"};
  return {.method = kMethods[choices.below(std::size(kMethods))],
          .path = any_path(choices),
          .headers = {{"x-sandbox-id", "demo"}, {"content-type", "application/json"}},
          .body = any_body(choices)};
}

inline std::string any_cell(Choices& choices) {
  static constexpr const char* kCells[] = {
      R"({"op":"inc"})",
      R"({"op":"error"})",
      R"({"op":"limit"})",
      R"({"op":"invalidate"})",
      R"({"op":"hold"})",
      R"({"op":"let_go"})",
      R"({"op":"chdir","cwd":"/workspace/a"})",
      R"({"op":"write","path":"/workspace/a","content":"new"})",
      R"({"op":"write","path":"/workspace/a","content":"bad","then":"error"})"};
  return kCells[choices.below(std::size(kCells))];
}

inline void run_cell(protocol::Interpreter& interpreter, Workspace& files, Choices& choices) {
  protocol::ExecuteArgs args;
  args.run.context = any_id(choices);
  args.run.code = any_cell(choices);
  static constexpr AfterError kAfterError[] = {AfterError::kKeep, AfterError::kRollback,
                                               AfterError::kFilesBack};
  args.run.on_error = kAfterError[choices.below(3)];
  const wasi::TreeState before = files.remember();
  if (choices.coin()) args.executions_known = choices.below(5);
  const bool gives = !choices.coin();
  const GetFiles get_files = [&](const std::vector<std::string>& paths) {
    return gives ? workspace_files(before, paths) : std::vector<WorkspaceFile>();
  };
  args.run.files = std::make_shared<const RunFiles>(
      RunFiles{.manifest = manifest_of(before), .get_files = get_files});
  RunOutput output;
  const auto response = interpreter.execute(std::move(args), output);
  if (response.ok()) {
    require(response->outcome.context.has_value(), "an answer is of a context");
    require(Workspace::normalize(response->outcome.cwd).ok(), "its folder is in the workspace");
    require(files.apply_diff(*response->outcome.files, 1).ok(),
            "the files of a run can be taken over");
  }
}

/// A sandbox that can be read from its storage again.
struct AnySandbox {
  AnySandbox() { open(); }
  void open() { one.emplace(*object, parts); }

  storage::MemoryDisk disk;
  std::unique_ptr<storage::Storage> storage = storage::open_memory_storage(disk);
  std::unique_ptr<storage::ObjectStorage> object =
      storage->open(sandbox::object_name("demo").value(), sandbox::Sandbox::schema()).value();
  object::ManualClock clock{kStart};
  executor::GuestPool guests{{.slots = 1, .stack_bytes = std::size_t{1} << 20}};
  const sandbox::SandboxParts parts{
      .bindings = {{"JAVASCRIPT", std::make_shared<sandbox::FakeWorker>("javascript")},
                   {"RUBY", std::make_shared<sandbox::FakeWorker>("ruby", false)}},
      .clock = clock,
      .guests = guests};
  std::optional<sandbox::Sandbox> one;
};

/// The same of an Interpreter.
struct AnyInterpreter {
  bool open() {
    one.reset();
    auto opened = interpreter::Interpreter::open(engine, *object, residency, clock, {});
    if (!opened.ok()) return false;
    one = *std::move(opened);
    return true;
  }
  protocol::Response fetch(const protocol::Request& request) {
    return protocol::serve_interpreter(*one, request, kStart.time_since_epoch().count());
  }

  storage::MemoryDisk disk;
  std::unique_ptr<storage::Storage> storage = storage::open_memory_storage(disk);
  std::unique_ptr<storage::ObjectStorage> object =
      storage->open({.class_name = "interpreter_fake", .id = "key"}, {}).value();
  object::ManualClock clock{kStart};
  std::shared_ptr<interpreter::FakeEngine> engine = std::make_shared<interpreter::FakeEngine>();
  interpreter::ResidencyPool residency;
  std::unique_ptr<interpreter::Interpreter> one;
};

/// Whatever happened, a request is answered with an object, and an error has a code.
inline json::object check_answered(const protocol::Request& request,
                                   const protocol::Response& response) {
  json::error_code failed;
  const json::value value = json::parse(response.body, failed);
  const std::string what =
      request.method + " " + request.path + " " + request.body + " -> " + response.body;
  require(!failed && value.is_object(), "it is answered with an object:", what);
  if (response.status >= 400)
    require(value.as_object().contains("code"), "an error has a code:", what);
  return value.as_object();
}

}  // namespace sw::fuzz
