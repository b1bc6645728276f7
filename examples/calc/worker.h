// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "calc.h"
#include "sandbox_workers/runtime.h"

namespace calc {

/// The usual routes of a runtime Worker, and GET /healthz.
inline sw::Result<std::shared_ptr<sw::interpreter::RuntimeWorker>> make_worker() {
  sw::interpreter::RuntimeWorkerOptions options;
  options.extensions.handle = [](const sw::protocol::Request& request,
                                 const sw::interpreter::UsualAnswer& usual) {
    if (request.path != "/healthz") return usual(request);
    return sw::protocol::json_text_response(200, R"({"status":"ok"})");
  };
  return sw::interpreter::make_runtime_worker(std::make_shared<Calc>(), options);
}

}  // namespace calc
