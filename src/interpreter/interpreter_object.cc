// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "interpreter/interpreter_object.h"

namespace sw::interpreter {

Result<InterpreterServer*> InterpreterObject::server(storage::ObjectStorage& storage) {
  if (!server_) {
    SW_TRY(server_, InterpreterServer::open(parts_.engine, storage, parts_.pool, *parts_.clock,
                                            parts_.options));
  }
  return server_.get();
}

object::Task<Result<void>> InterpreterObject::serve(
    std::function<Result<void>(InterpreterServer&)> work, std::function<void()> on_cancel) {
  object::StorageWork with_server =
      [this, work = std::move(work)](storage::ObjectStorage& storage) -> Result<void> {
    SW_TRY(InterpreterServer* const server, this->server(storage));
    return work(*server);
  };
  Result<void> done =
      co_await context_.run_with_storage(std::move(with_server), std::move(on_cancel));
  co_return done;
}

object::Task<Result<void>> InterpreterObject::on_alarm(object::Time /*scheduled*/) {
  std::function<Result<void>(InterpreterServer&)> ring =
      [](InterpreterServer& server) -> Result<void> {
    const auto verdict = server.on_alarm();
    return verdict.ok() ? Result<void>() : verdict.error();
  };
  std::function<void()> on_cancel;
  Result<void> rung = co_await serve(std::move(ring), std::move(on_cancel));
  co_return rung;
}

}  // namespace sw::interpreter
