// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sandbox_workers/runtime.h"

namespace calc {

/// The usual routes of a runtime Worker, and GET /healthz.
class CalcWorker final : public sw::interpreter::InterpreterWorker {
 public:
  using InterpreterWorker::InterpreterWorker;

 protected:
  std::optional<sw::protocol::Response> route(const sw::protocol::Request& request) override {
    if (request.path != "/healthz") return std::nullopt;
    return sw::protocol::json_text_response(200, R"({"status":"ok"})");
  }
};

}  // namespace calc
