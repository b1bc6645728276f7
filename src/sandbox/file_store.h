// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files of a sandbox in its storage: an entry per path, and contents by their SHA-256, each
// once.
// Format: docs/formats/files.md.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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

  /// What is stored of a path.
  struct Entry {
    wasi::FileType type = wasi::FileType::kRegularFile;
    std::string digest = {};  ///< of a file: the SHA-256 of its content
    std::string target = {};  ///< of a link
    std::uint64_t modified_ns = 0;
  };
  struct Change {
    std::string path;  ///< below /workspace
    std::optional<Entry> before;
    std::optional<Entry> after;
  };

  /// What the tree now has that the storage has not, ready to be written.
  class Changes {
   public:
    const std::vector<Change>& entries() const { return entries_; }
    /// May be called again if the transaction is run again.
    Result<void> write(storage::Transaction& transaction) const;

   private:
    friend class FileStore;
    std::vector<Change> entries_;
    std::map<std::string, wasi::SharedBytes> contents_;  // of the files in `entries_`, by digest
    std::map<std::string, std::int64_t> uses_;           // how many more files have a content
    std::vector<std::string> new_contents_;
    std::vector<std::string> old_contents_;
    wasi::TreeState state_;
  };
  /// In the time of what changed.
  Changes changes();
  /// The transaction that wrote `changes` is committed.
  void written(Changes changes);

 private:
  FileStore() = default;
  std::optional<Entry> stored_entry(const std::string& path,
                                    const wasi::TreeState::Entry* stored) const;

  std::shared_ptr<wasi::Tree> tree_;            // shared with the runs
  wasi::TreeState stored_;                      // what the storage has
  std::map<std::string, std::string> digests_;  // of the stored files, by path
  std::map<std::string, std::int64_t> uses_;    // of contents, by digest: how many files have each
};

}  // namespace sw::sandbox
