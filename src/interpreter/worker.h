// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A runtime Worker over what its process has: one host of durable objects, one pool of guest threads,
// one pool of instances, for all languages.

#include <memory>
#include <string>
#include <string_view>

#include "executor/guest_pool.h"
#include "interpreter/interpreter.h"
#include "interpreter/residency_pool.h"
#include "object/host.h"
#include "sandbox_workers/interpreter/runtime_worker.h"

namespace sw::interpreter {

/// What Workers share. All of it outlives them.
struct WorkerParts {
  object::ObjectHost& objects;
  object::Clock& clock;
  executor::GuestPool& guests;
  ResidencyPool& residency;
};

class Worker final : public RuntimeWorker {
 public:
  /// Adds the class of its Interpreters to the host. The options about storage, residency and runs at
  /// once are not looked at.
  Worker(std::shared_ptr<engine::Engine> engine, RuntimeWorkerOptions options,
         const WorkerParts& parts);

  Result<protocol::WorkerInfo> info() override;
  Result<Outcome> run(const Run& run, RunEvents& events) override;
  Result<std::shared_ptr<protocol::Interpreter>> interpreter(std::string_view key) override;

  /// Where the Interpreter `key` is in the storage.
  /// Of the objects.
  static storage::Schema schema() { return Contexts::schema(); }
  static std::vector<storage::TableId> tables() { return Contexts::tables(); }
  storage::ObjectName object_of(std::string_view key) const {
    return {.class_name = class_name_, .id = std::string(key)};
  }

  protocol::Response fetch(const protocol::Request& request) override;
  const std::shared_ptr<engine::Engine>& engine() const override { return engine_; }

 private:
  Result<void> check_key(std::string_view key) const;
  protocol::Response answer(const protocol::Request& request);
  Result<protocol::Response> run_once(const protocol::Request& request);
  Result<protocol::Response> ask_interpreter(const protocol::Request& request);
  std::int64_t now_ms() { return parts_.clock.now().time_since_epoch().count(); }

  const std::shared_ptr<engine::Engine> engine_;  // shared with its Interpreters
  const RuntimeWorkerOptions options_;
  const WorkerParts parts_;
  const std::string class_name_;
};

/// A Worker by itself, whose contexts are kept in `storage`.
std::shared_ptr<RuntimeWorker> make_runtime_worker(std::shared_ptr<engine::Engine> engine,
                                                   RuntimeWorkerOptions options,
                                                   std::unique_ptr<storage::Storage> storage);

}  // namespace sw::interpreter
