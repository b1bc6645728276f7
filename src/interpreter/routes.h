// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "interpreter/server.h"
#include "sandbox_workers/runtime/answers.h"

namespace sw::interpreter {

/// What an Interpreter answers over HTTP: docs/protocol.md. The server is at work meanwhile.
class Routes {
 public:
  explicit Routes(InterpreterServer& server) : server_(server), contexts_(*server.contexts_) {}

  runtime::Response fetch(const runtime::Request& request);

 private:
  using Answer = runtime::Answer<runtime::Response>;

  /// `parts` are those of the path after "/contexts/", decoded; the first is the id.
  Answer route(const runtime::Request& request, const std::vector<std::string>& parts);
  Answer with_context(const runtime::Request& request, const std::vector<std::string>& parts);

  Answer destroy();
  Answer create(const runtime::Request& request);
  Answer list();
  Answer get(const std::string& id);
  Answer remove(const std::string& id);
  Answer fork(const runtime::Request& request, const std::string& id);
  Answer undo(const runtime::Request& request, const std::string& id);
  Answer list_checkpoints(const std::string& id);
  Answer add_checkpoint(const runtime::Request& request, const std::string& id);
  Answer remove_checkpoint(const std::string& id, const std::string& name);
  Answer restore_checkpoint(const runtime::Request& request, const std::string& id);

  /// A context as the version routes and the list give it.
  Result<std::string> context_json(const std::string& id, const ContextRow& row);
  Answer context_answer(int status, const std::string& id, const Result<ContextRow>& row);
  /// The memory that an instance holds is not the context's any more.
  Answer forgotten(const std::string& id, const Result<ContextRow>& row);
  Answer not_found() const { return runtime::not_found_response(contexts_.now_ms()); }
  Answer only(std::string_view methods) const {
    return runtime::method_not_allowed_response(methods, contexts_.now_ms());
  }

  InterpreterServer& server_;
  Contexts& contexts_;
};

}  // namespace sw::interpreter
