// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where commits go first, in one order for all objects.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "storage/layer.h"

namespace sw::storage {

/// The changes of one commit.
class CommitRecord {
 public:
  struct Part {
    LayerPtr layer;
    std::shared_ptr<const Rows> rows;  // shared with the layer
  };

  /// `frees_space`: it deletes, and so has to work on a full disk as long as possible.
  CommitRecord(std::vector<Part> parts, Durability durability, bool frees_space)
      : parts_(std::move(parts)), durability_(durability), frees_space_(frees_space) {}
  virtual ~CommitRecord() = default;
  CommitRecord(const CommitRecord&) = delete;
  CommitRecord& operator=(const CommitRecord&) = delete;

  const std::vector<Part>& parts() const { return parts_; }
  Durability durability() const { return durability_; }
  bool frees_space() const { return frees_space_; }

  // These are called with the log's mutex held, one record at a time.

  /// Whether the owners of all objects are still those that made the changes.
  virtual bool is_valid() const = 0;
  /// The commit failed; whoever relied on it has to begin anew.
  virtual void failed() = 0;

 private:
  const std::vector<Part> parts_;
  const Durability durability_;
  const bool frees_space_;
};

/// kConflict.
Error lost_ownership();

/// Threads: any.
class CommitLog {
 public:
  virtual ~CommitLog() = default;

  /// Puts the record in its place among all: from now on its changes are pending in their layers.
  /// Errors: kConflict if it is not valid any more; kUnavailable when nothing can be committed.
  virtual Result<std::unique_ptr<PendingCommit>> add(std::shared_ptr<CommitRecord> record) = 0;
  /// Whether relaxed commits are less durable than others.
  virtual bool can_relax() const = 0;
};

/// For storage in memory: a commit is done at once.
class MemoryLog final : public CommitLog {
 public:
  /// What `add` fails with; nullopt: it works.
  void fail(std::optional<Error> error);
  Result<std::unique_ptr<PendingCommit>> add(std::shared_ptr<CommitRecord> record) override;
  bool can_relax() const override { return false; }

 private:
  Mutex mutex_;
  std::optional<Error> failure_ SW_GUARDED_BY(mutex_);
};

}  // namespace sw::storage
