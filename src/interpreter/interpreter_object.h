// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// An Interpreter as a durable object: its calls wait in the mailbox, its state is in the object's
// storage, its alarm deletes it when nobody uses it.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "interpreter/server.h"
#include "object/object.h"

namespace sw::interpreter {

/// What the Interpreters of one Worker share.
struct ObjectParts {
  std::shared_ptr<engine::Engine> engine;
  std::shared_ptr<ResidencyPool> pool;
  object::Clock* clock = nullptr;
  ServerOptions options;
};

class InterpreterObject final : public object::Object {
 public:
  /// `parts` outlives it.
  InterpreterObject(object::ObjectContext& context, const ObjectParts& parts)
      : context_(context), parts_(parts) {}

  /// Does something with the server, on a thread that may block. `work` and what it uses live until
  /// the task ends. `on_cancel` is called, on any thread, if the call is cancelled meanwhile.
  object::Task<Result<void>> serve(std::function<Result<void>(InterpreterServer&)> work,
                                   std::function<void()> on_cancel);

  object::Task<Result<void>> on_alarm(object::Time scheduled) override;

 private:
  Result<InterpreterServer*> server(storage::ObjectStorage& storage);

  object::ObjectContext& context_;
  const ObjectParts& parts_;
  // made when first needed, by work that has the storage
  std::unique_ptr<InterpreterServer> server_;
};

}  // namespace sw::interpreter
