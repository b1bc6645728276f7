// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A durable object: state in memory, which is a copy of what its storage holds. Its host makes it when
// somebody asks for it, and may drop it whenever nobody holds a lease; whoever asks next gets it made
// again from its storage. So all that matters is in the storage.

#include "sandbox_workers/base/result.h"
#include "storage/storage.h"

namespace sw::object {

using storage::Time;

/// Used by several threads at once: a class guards its state by a mutex of its own.
class Object {
 public:
  virtual ~Object() = default;

  /// The alarm in its storage has gone off; it is set to `scheduled` still, and is cleared after this
  /// if it is not set to another time. After an Error it goes off again later.
  virtual Result<void> on_alarm(Time scheduled) = 0;
};

}  // namespace sw::object
