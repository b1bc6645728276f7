// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A run in a sandbox, from its being asked for to its end.

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "protocol/joint_commit.h"
#include "sandbox/sandbox.h"

namespace sw::sandbox {

/// A run that has been asked for, until its outcome is handed over.
struct Sandbox::Launch {
  Launch(Run asked, Binding its_binding)
      : run(std::move(asked)),
        binding(std::move(its_binding)),
        passed_on(run.cancel, [this] { stop.request_stop(); }) {
    // The caller and `interrupt` end it in the same way.
    run.cancel = stop.get_token();
  }

  std::stop_source stop;
  Run run;  // in `run.context`; without a context if that is empty
  const Binding binding;
  std::stop_callback<std::function<void()>> passed_on;
};

/// A run in a context, from its begin to its end.
struct Sandbox::Execution {
  const Launch& launch;
  ContextRecord context = {};  // as it was at the begin
  std::string key = {};        // of the Interpreters
  protocol::ExecuteArgs args = {};
  Durability durability = Durability::kCommit;

  /// What the Interpreter stores, while it can be stored together.
  struct Interpreters {
    storage::ObjectStorage& object;
    const storage::TransactionBody& body;
  };
  std::optional<Interpreters> interpreter = {};
  bool taken_over = false;  // what came of it is stored, but for the disk
  std::unique_ptr<storage::PendingCommit> stored = {};
};

/// Stores what a Sandbox keeps of a run together with what its Interpreter does.
class Sandbox::Joint final : public protocol::JointCommit {
 public:
  Joint(Sandbox& sandbox, Execution& execution) : sandbox_(sandbox), execution_(execution) {}

  bool can_join(const storage::ObjectStorage& interpreter) const override;
  Result<void> commit(const protocol::ExecuteResponse& answer, storage::ObjectStorage& interpreter,
                      const storage::TransactionBody& body) override;

 private:
  Sandbox& sandbox_;
  Execution& execution_;
};

}  // namespace sw::sandbox
