// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One commit for what a Sandbox and an Interpreter store of a run, or of another change of a context's
// memory, where both are in one storage.
// An Interpreter elsewhere cannot, and stores first (docs/adr/0013).

#include "sandbox_workers/protocol/protocol.h"
#include "storage/storage.h"

namespace sw::protocol {

/// The Sandbox's side, for one run or change.
template <class Answer>
class JointCommit {
 public:
  virtual ~JointCommit() = default;

  /// Whether what `interpreter` stores can be committed with what the Sandbox does.
  virtual bool can_join(const storage::ObjectStorage& interpreter) const = 0;

  /// Commits `body`, the Interpreter's changes, together with what the Sandbox stores of the answer.
  /// The change has its place when this returns; for runs the Sandbox waits for the disk.
  /// Errors: kBadReply for an answer that cannot be; those of the storage, and of what the Sandbox does
  /// along with it. Nothing was committed.
  virtual Result<void> commit(const Answer& answer, storage::ObjectStorage& interpreter,
                              const storage::TransactionBody& body) = 0;
};

}  // namespace sw::protocol
