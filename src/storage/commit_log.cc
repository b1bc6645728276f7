// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/commit_log.h"

#include <utility>

namespace sw::storage {

namespace {

class Done final : public PendingCommit {
 public:
  Result<void> wait() override { return {}; }
};

}  // namespace

Error lost_ownership() {
  return Error{ErrorCode::kConflict, "the object is now owned by another opener", 0};
}

void MemoryLog::fail(std::optional<Error> error) {
  const MutexLock lock(mutex_);
  failure_ = std::move(error);
}

Result<std::unique_ptr<PendingCommit>> MemoryLog::add(std::shared_ptr<CommitRecord> record) {
  const MutexLock lock(mutex_);
  if (!record->is_valid()) return lost_ownership();
  if (failure_) return *failure_;
  for (const CommitRecord::Part& part : record->parts()) {
    part.layer->add(part.rows);
    part.layer->settle();
  }
  return std::unique_ptr<PendingCommit>(std::make_unique<Done>());
}

}  // namespace sw::storage
