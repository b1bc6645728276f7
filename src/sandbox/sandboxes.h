// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The sandboxes of a host of durable objects: made for their first use, dropped from memory when
// nobody uses them, destroyed by their alarm.

#include <memory>
#include <string_view>

#include "object/host.h"
#include "sandbox/sandbox.h"

namespace sw::sandbox {

/// Threads: any.
class Sandboxes {
 public:
  /// Adds the sandboxes' class to the host, which outlives it, as do the parts.
  Sandboxes(object::ObjectHost& objects, const SandboxParts& parts);

  /// A lease. Errors: an id that cannot be; those of the storage.
  Result<std::shared_ptr<Sandbox>> get(std::string_view id);

  /// Any request to a sandbox, by its header x-sandbox-id.
  protocol::Response fetch(const protocol::Request& request);

 private:
  object::ObjectHost& objects_;
  const SandboxParts& parts_;
};

}  // namespace sw::sandbox
