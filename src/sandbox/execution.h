// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a sandbox does together with an Interpreter: a run, from its being asked for to its end, and other
// changes of a context's memory.

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "executor/guest_pool.h"
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

/// What an Interpreter stores, while it can be stored together.
struct Sandbox::Interpreters {
  storage::ObjectStorage& object;
  const storage::TransactionBody& body;
};

/// A run in a context, from its begin to its end.
struct Sandbox::Execution {
  const Launch& launch;
  executor::GuestPool::Slot& slot;
  ContextRecord context = {};  // as it was at the begin
  std::string key = {};        // of the Interpreters
  protocol::ExecuteArgs args = {};
  Durability durability = Durability::kCommit;

  bool taken_over = false;  // what came of it is stored, but for the disk
  std::unique_ptr<storage::PendingCommit> stored = {};
};

/// Stores what a Sandbox keeps of a run together with what its Interpreter does.
class Sandbox::Joint final : public protocol::JointCommit<protocol::ExecuteResponse> {
 public:
  Joint(Sandbox& sandbox, Execution& execution) : sandbox_(sandbox), execution_(execution) {}

  bool can_join(const storage::ObjectStorage& interpreter) const override;
  Result<void> commit(const protocol::ExecuteResponse& answer, storage::ObjectStorage& interpreter,
                      const storage::TransactionBody& body) override;

 private:
  Sandbox& sandbox_;
  Execution& execution_;
};

/// A context's memory becomes that of another version, or a new context begins with one.
struct Sandbox::VersionChange {
  ContextRecord context;  // what comes of it
  /// Whose steps are meant.
  std::string steps_of = context.id;
  VersionOptions options = {};
  VersionFiles files = {};
  bool taken_over = false;  // what came of it is stored

  bool is_fork() const { return steps_of != context.id; }
};

/// Stores what a Sandbox keeps of that together with what its Interpreter does.
class Sandbox::JointChange final : public protocol::JointChange {
 public:
  JointChange(Sandbox& sandbox, VersionChange& change) : sandbox_(sandbox), change_(change) {}

  bool can_join(const storage::ObjectStorage& interpreter) const override;
  Result<void> commit(const protocol::ContextInfo& answer, storage::ObjectStorage& interpreter,
                      const storage::TransactionBody& body) override;

 private:
  Sandbox& sandbox_;
  VersionChange& change_;
};

}  // namespace sw::sandbox
