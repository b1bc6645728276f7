// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "interpreter/context_row.h"
#include "interpreter/interpreter.h"
#include "interpreter/residency_pool.h"
#include "protocol/messages.h"

namespace sw::interpreter {

/// One run, from the request to the answer.
struct Interpreter::Execution {
  protocol::ExecuteArgs args;
  RunEvents& events;
  ContextRow row = {};
  std::unique_ptr<Resident> resident = {};
  protocol::ExecuteResponse response = {};
  engine::SessionSnapshot memory = {};  // while it is saved

  const std::string& id() const { return args.run.context; }
  ContextRun& told() { return *response.outcome.context; }
  void note(std::string_view more) {
    std::string& note = told().note;
    if (!note.empty() && !more.empty()) note += "; ";
    note += more;
  }
  void put_files_back() { response.outcome.files = WorkspaceDiff(); }
};

}  // namespace sw::interpreter
