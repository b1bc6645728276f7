// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "sandbox_workers/base/utf8.h"
#include "sandbox_workers/engine/engine.h"

namespace sw::engine {

namespace {

constexpr std::size_t kMessageBytesMax = 2048;

Error no_sessions(const EngineInfo& info) {
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} has no code contexts", info.engine_name), 0};
}

}  // namespace

Error ExecutionLimitError(std::string message) {
  return Error{ErrorCode::kLimitExceeded, std::move(message), 0};
}

bool is_execution_limit(const Error& error) { return error.code == ErrorCode::kLimitExceeded; }

Outcome engine_error_outcome(const Error& error) {
  Outcome outcome;
  outcome.ending = is_execution_limit(error) ? Ending::kTimeLimit : Ending::kCrashed;
  std::string message = error.message.empty() ? "Execution failed" : error.message;
  // The cut may go through a character.
  if (message.size() > kMessageBytesMax)
    message = to_valid_utf8(message.substr(0, kMessageBytesMax));
  outcome.error =
      GuestError{.name = is_execution_limit(error) ? kExecutionLimitError : kEngineError,
                 .message = std::move(message),
                 .traceback = {},
                 .line_number = {}};
  outcome.cut_off = true;
  return outcome;
}

Result<std::unique_ptr<SessionInstance>> Engine::boot() { return no_sessions(info()); }

Result<std::unique_ptr<SessionInstance>> Engine::restore(SnapshotSource& /*source*/) {
  return no_sessions(info());
}

Result<void> Engine::on_guest_thread(const std::function<void()>& body) {
  body();
  return {};
}

}  // namespace sw::engine
