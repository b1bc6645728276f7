// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The Workers that binding names stand for, as a sandbox asks them.

#include <boost/json/value.hpp>
#include <stop_token>
#include <string>
#include <string_view>

#include "sandbox/answer.h"
#include "sandbox_workers/runtime/worker.h"

namespace sw::sandbox {

/// What a Worker says of itself.
struct BindingInfo {
  std::string language;
  std::string engine;
  bool contexts = false;
};

class Binding {
 public:
  /// Refuses names that cannot be, and such that stand for nothing.
  static Answer<Binding> find(const runtime::Bindings& bindings, std::string_view name);

  const std::string& name() const { return name_; }
  runtime::Worker& worker() const { return *worker_; }

  /// Asks the Worker what it is. Refuses what is no runtime Worker, or speaks another protocol.
  Answer<BindingInfo> probe() const;

  /// The Worker's answer to a request with a JSON body (or none), whatever its status. A Worker that cannot be
  /// reached is a failure. `cancel` ends what the request started.
  Answer<runtime::Response> request(std::string method, std::string path, std::string body = {},
                                    std::stop_token cancel = {}) const;

 private:
  Binding(std::string name, std::shared_ptr<runtime::Worker> worker)
      : name_(std::move(name)), worker_(std::move(worker)) {}

  std::string name_;
  std::shared_ptr<runtime::Worker> worker_;  // shared with the bindings
};

}  // namespace sw::sandbox
