// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a binding name stands for: a runtime Worker, which runs code of one language. It may be in this process,
// behind a socket, or on another host; callers cannot tell.

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/runtime/http.h"
#include "sandbox_workers/runtime/protocol.h"
#include "sandbox_workers/wasi/streams.h"

namespace sw::runtime {

/// Threads: any.
class Worker {
 public:
  virtual ~Worker() = default;

  /// GET /interpreter, POST /execute and /interpreters/KEY/…: docs/protocol.md. Blocks until the answer is there.
  /// An Error is a failure of what carries the request.
  virtual Result<Response> fetch(const Request& request) = 0;

  /// Runs a cell in a context of the Interpreter `key`. What is printed goes to `output` as it is printed. An
  /// Error is a failure of what carries the call; what the Interpreter refuses is an ErrorBody.
  virtual Result<Answer<ExecuteResponse>> execute_in_context(std::string_view key, const ExecuteArgs& args,
                                                             const GetFiles& get_files,
                                                             wasi::OutputSink& output) = 0;
};

/// Which Worker a binding name stands for.
using Bindings = std::map<std::string, std::shared_ptr<Worker>, std::less<>>;

}  // namespace sw::runtime
