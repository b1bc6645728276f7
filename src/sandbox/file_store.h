// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files of a sandbox in its storage: an entry per path, and contents by their SHA-256, each
// once.
// Format: docs/formats/files.md.

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "sandbox_workers/base/result.h"
#include "storage/storage.h"
#include "wasi/tree_state.h"

namespace sw::sandbox {

/// Threads: one at a time.
class FileStore {
 public:
  /// Loads the files into a new tree, which gets the limits once they are in it.
  /// Errors: kCorrupt naming the file whose content is missing or damaged.
  static Result<FileStore> load(storage::ObjectStorage& storage, const wasi::TreeLimits& limits,
                                std::uint64_t now_ns);

  const std::shared_ptr<wasi::Tree>& tree() const { return tree_; }
  /// The files as they are stored. It stays as it is when others are stored.
  const std::shared_ptr<const wasi::TreeState>& stored() const { return stored_; }

  /// What the tree now has that the storage has not, ready to be written.
  class Changes {
   public:
    bool empty() const { return entries_.empty(); }
    /// May be called again if the transaction is run again.
    Result<void> write(storage::Transaction& transaction) const;

   private:
    friend class FileStore;
    struct Entry {
      std::optional<std::string> row;  // absent: the entry goes
    };
    std::map<std::string, Entry> entries_;
    std::map<std::string, wasi::SharedBytes> new_contents_;
    std::vector<std::string> old_contents_;
    std::shared_ptr<const wasi::TreeState> state_;
    std::map<std::string, std::string> digests_;
  };
  Changes changes() const;
  /// The transaction that wrote `changes` is committed.
  void written(Changes changes);

 private:
  FileStore() = default;

  std::shared_ptr<wasi::Tree> tree_;               // shared with the runs
  std::shared_ptr<const wasi::TreeState> stored_;  // what the storage has; shared with runs
  std::map<std::string, std::string> digests_;     // of the stored files, by path
};

}  // namespace sw::sandbox
