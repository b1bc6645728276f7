// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "storage/layered_object.h"

namespace sw::storage {

/// A commit that changes the directory. Nobody else changes it meanwhile.
class SW_SCOPED_CAPABILITY LayeredStorage::DirectoryChange {
 public:
  explicit DirectoryChange(LayeredStorage& storage) SW_ACQUIRE(storage.directory_mutex_);
  ~DirectoryChange() SW_RELEASE() {}

  LayeredTransaction& directory() { return directory_; }

  /// A layer for an object's own changes, or, without an owner, for others to be merged into.
  Result<LayerPtr> new_layer(bool lowest, std::uint64_t owners = 1);
  /// Another object has the layers now.
  Result<void> share(const std::vector<LayerNumber>& layers);
  /// One object less has them.
  Result<void> release(const std::vector<LayerNumber>& layers);

  /// Commits it together with rows of objects.
  Result<std::unique_ptr<PendingCommit>> add(std::vector<Record::Owned> objects,
                                             std::vector<CommitRecord::Part> parts,
                                             Durability durability, bool frees_space);
  /// Layers that nobody has any more once it is committed.
  const std::vector<LayerNumber>& unused() const { return unused_; }

 private:
  LayeredStorage& storage_;
  const MutexLock lock_;
  LayeredTransaction directory_;
  std::vector<LayerNumber> unused_;
  bool numbered_ = false;
};

}  // namespace sw::storage
