// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The Workers that binding names stand for, as a sandbox asks them.

#include <memory>
#include <string>
#include <string_view>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/protocol/worker.h"

namespace sw::sandbox {

class Binding {
 public:
  /// Errors: kInvalidArgument for names that cannot be, and such that stand for nothing.
  static Result<Binding> find(const protocol::Bindings& bindings, std::string_view name);

  const std::string& name() const { return name_; }
  protocol::Worker& worker() const { return *worker_; }

  /// Asks the Worker what it is. Errors: kInvalidArgument for what is no runtime Worker, or speaks
  /// another protocol.
  Result<protocol::WorkerInfo> probe() const;

  Result<std::shared_ptr<protocol::Interpreter>> interpreter(std::string_view key) const;

  /// What the Worker answered, or could not.
  template <class T>
  Result<T> answer(Result<T> result) const {
    if (result.ok() || result.error().code != ErrorCode::kUnreachable) return result;
    return std::move(result).error().while_doing("Binding '" + name_ + "' failed");
  }

 private:
  Binding(std::string name, std::shared_ptr<protocol::Worker> worker)
      : name_(std::move(name)), worker_(std::move(worker)) {}

  std::string name_;
  std::shared_ptr<protocol::Worker> worker_;  // shared with the bindings
};

}  // namespace sw::sandbox
