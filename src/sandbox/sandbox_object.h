// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sandboxes as durable objects: made for their first request, one request at a time each, dropped
// from memory when idle, destroyed by their alarm.

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "object/host.h"
#include "sandbox/sandbox.h"

namespace sw::sandbox {

class SandboxObject final : public object::Object {
 public:
  /// What all sandboxes of a host have in common.
  struct Common {
    runtime::Bindings bindings;
    object::Clock& clock;
    SandboxOptions options;
  };

  SandboxObject(object::ObjectContext& context, std::shared_ptr<const Common> common)
      : context_(context), common_(std::move(common)) {}

  /// Does something with the sandbox, on a thread that may wait.
  object::Task<Result<void>> use(std::function<void(Sandbox&)> body,
                                 std::function<void()> on_cancel);
  object::Task<Result<void>> on_alarm(object::Time scheduled) override;

 private:
  object::ObjectContext& context_;
  const std::shared_ptr<const Common> common_;  // shared by the sandboxes of a host
  std::optional<Sandbox> sandbox_;              // made with the storage, at the first use
};

/// The sandboxes of one storage.
/// Threads: any, but none that sandboxes or the Interpreters behind the bindings run on.
/// Interpreters in this process need an ObjectHost of their own: a run holds one of this host's
/// blocking threads while it waits for them.
class Sandboxes {
 public:
  /// `storage` and `clock` outlive it.
  Sandboxes(storage::Storage& storage, object::Clock& clock, runtime::Bindings bindings,
            const SandboxOptions& options, object::HostOptions host_options);

  /// Alarms go off from now on: sandboxes that nobody uses are destroyed.
  void start_alarms() { host_.start_alarms(); }

  /// Any request to a sandbox, by its header x-sandbox-id. `reply` is called once, on a thread of
  /// the host, and must not wait.
  std::shared_ptr<object::Call> send(runtime::Request request,
                                     std::function<void(runtime::Response)> reply);
  /// The same, and waits.
  runtime::Response fetch(runtime::Request request);

  /// Does something with a sandbox and waits for it. Errors: an id that cannot be; those of the
  /// storage.
  Result<void> use(std::string_view id, std::function<void(Sandbox&)> body);

  object::ObjectHost& host() { return host_; }

 private:
  object::Clock& clock_;
  object::ObjectHost host_;
};

}  // namespace sw::sandbox
