// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What a Worker adds or changes.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "interpreter/worker_fixture.h"
#include "sandbox_workers/protocol/answers.h"

namespace sw::interpreter {
namespace {

using protocol::ExecuteResponse;
using protocol::Request;
using protocol::Response;

TEST_F(WorkerTest, MayAnswerOwnRoutesAndChangeTheUsualAnswers) {
  restart({.extensions = {.handle = [](const Request& request, const UsualAnswer& usual) {
             if (request.path == "/healthz")
               return protocol::json_text_response(200, R"({"ok":true})");
             if (request.path != "/other") {
               Response answer = usual(request);
               answer.headers.emplace_back("x-served-by", "test");
               return answer;
             }
             Request changed = request;
             changed.path = "/interpreter";
             return usual(changed);
           }}});
  EXPECT_EQ(fetch("GET", "/healthz").body, R"({"ok":true})");
  EXPECT_EQ(json(fetch("GET", "/other")).at("language"), "fake");
  const auto nothing = fetch("GET", "/nothing");
  EXPECT_EQ(nothing.status, 404);
  EXPECT_EQ(*protocol::find_header(nothing.headers, "X-Served-By"), "test");
}

TEST_F(WorkerTest, MayAnswerOwnRoutesOfAnInterpreter) {
  restart(
      {.extensions = {.handle_interpreter = [](protocol::Interpreter& interpreter,
                                               const Request& request, const UsualAnswer& usual) {
         if (request.path != "/count") return usual(request);
         const auto contexts = interpreter.contexts();
         return protocol::json_text_response(200, std::to_string(contexts->size()));
       }}});
  EXPECT_EQ(fetch("GET", "/interpreters/a/count").body, "0");
  EXPECT_EQ(fetch("POST", "/interpreters/a/contexts", R"({"id":"c"})").status, 201);
  EXPECT_EQ(fetch("GET", "/interpreters/a/count").body, "1");
  EXPECT_EQ(fetch("GET", "/interpreters/b/count").body, "0");
  EXPECT_EQ(fetch("GET", "/interpreters/a%20b/count").status, 400) << "keys are checked before";
}

/// Counts the runs that pass through it.
class CountedInterpreter final : public protocol::Interpreter {
 public:
  CountedInterpreter(std::shared_ptr<protocol::Interpreter> inner, std::atomic<int>& runs)
      : inner_(std::move(inner)), runs_(runs) {}

  Result<ExecuteResponse> execute(protocol::ExecuteArgs args, RunEvents& events) override {
    ++runs_;
    return inner_->execute(std::move(args), events);
  }
  Result<protocol::ContextInfo> create(std::string_view id, std::string_view cwd) override {
    return inner_->create(id, cwd);
  }
  Result<std::vector<protocol::ContextInfo>> contexts() override { return inner_->contexts(); }
  Result<protocol::ContextInfo> context(std::string_view id) override {
    return inner_->context(id);
  }
  Result<void> remove(std::string_view id) override { return inner_->remove(id); }
  Result<void> destroy() override { return inner_->destroy(); }
  Result<void> forget_history(std::string_view id) override { return inner_->forget_history(id); }
  Result<std::vector<protocol::HistoryEntry>> history(std::string_view id) override {
    return inner_->history(id);
  }
  Result<protocol::ContextInfo> fork(std::string_view id, std::string_view new_id,
                                     const ContextVersion& from,
                                     protocol::JointChange* joint) override {
    return inner_->fork(id, new_id, from, joint);
  }
  Result<protocol::ContextInfo> restore(std::string_view id, const ContextVersion& version,
                                        protocol::JointChange* joint) override {
    return inner_->restore(id, version, joint);
  }
  Result<protocol::ContextInfo> undo(std::string_view, std::uint32_t,
                                     protocol::JointChange*) override {
    return Error{ErrorCode::kInvalidArgument, "nothing is undone here", 0};
  }
  Result<protocol::Checkpoint> add_checkpoint(std::string_view id, std::string_view name) override {
    return inner_->add_checkpoint(id, name);
  }
  Result<std::vector<protocol::Checkpoint>> checkpoints(std::string_view id) override {
    return inner_->checkpoints(id);
  }
  Result<void> remove_checkpoint(std::string_view id, std::string_view name) override {
    return inner_->remove_checkpoint(id, name);
  }

 private:
  const std::shared_ptr<protocol::Interpreter> inner_;
  std::atomic<int>& runs_;
};

TEST_F(WorkerTest, MayExtendItsInterpretersForCallsAndForHttp) {
  std::atomic<int> runs = 0;
  restart({.extensions = {.extend_interpreter = [&](std::shared_ptr<protocol::Interpreter> inner) {
             return std::make_shared<CountedInterpreter>(std::move(inner), runs);
           }}});
  EXPECT_EQ(fetch("POST", "/interpreters/a/contexts", R"({"id":"c"})").status, 201);
  EXPECT_EQ(value("a", R"({"op":"inc"})"), "1");
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(message(fetch("POST", "/interpreters/a/contexts/c/undo", "{}")),
            "nothing is undone here");
}

}  // namespace
}  // namespace sw::interpreter
