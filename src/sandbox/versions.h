// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Versions of whole sandboxes: their files, environment and contexts with their memory, copied in
// one commit and in a time that does not depend on their size (ADR 0022). A checkpoint is a copy that
// nobody uses; it outlives its sandbox.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_safety.h"
#include "sandbox/sandbox.h"
#include "sandbox/sandboxes.h"
#include "sandbox/stored_sandbox.h"
#include "storage/storage.h"

namespace sw::sandbox {

/// The class of checkpoints in the storage.
inline constexpr char kCheckpointClass[] = "checkpoint";

struct SandboxCheckpoint {
  std::string name;
  std::string sandbox;  ///< that it was made of, which may be gone
  std::int64_t taken_at_ms = 0;
  std::vector<std::string> contexts = {};
};

/// Sandboxes with contexts in a Worker elsewhere are refused.
/// Threads: any. Errors: kInvalidArgument for names that cannot be or are taken; kNotFound.
class Versions {
 public:
  /// All outlive it.
  Versions(storage::Storage& storage, Sandboxes& sandboxes, const SandboxParts& parts)
      : storage_(storage), sandboxes_(sandboxes), parts_(parts) {}

  /// A checkpoint of the sandbox as it is now. Absent: a name that is an id.
  Result<SandboxCheckpoint> checkpoint(std::string_view sandbox,
                                       const std::optional<std::string>& name);
  /// Of all sandboxes, by name, from the one after `after` on.
  Result<std::vector<SandboxCheckpoint>> checkpoints(std::string_view after, std::size_t count_max);
  Result<void> remove_checkpoint(std::string_view name);

  /// Makes the sandbox, which need not exist, what the checkpoint is. Its runs are interrupted.
  Result<void> restore(std::string_view sandbox, std::string_view checkpoint);
  /// A new sandbox that is what another is, or a checkpoint.
  Result<void> fork(std::string_view sandbox, std::string_view new_sandbox);
  Result<void> fork_checkpoint(std::string_view checkpoint, std::string_view new_sandbox);
  /// The same of what is stored, whatever it is.
  Result<void> fork_stored(const StoredSandbox& stored, std::string_view new_sandbox);
  /// Whether a new sandbox could be called so.
  Result<void> check_new(std::string_view sandbox) const;

 private:
  /// An existing checkpoint as it is stored.
  Result<StoredSandbox> find(std::string_view checkpoint);
  Result<void> begin_life(storage::Transaction& transaction) const;

  storage::Storage& storage_;
  Sandboxes& sandboxes_;
  const SandboxParts& parts_;
  Mutex mutex_;  // from looking whether a name is free to taking it
};

}  // namespace sw::sandbox
