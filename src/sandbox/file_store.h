// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files of a sandbox in its storage: an entry per path, contents by their SHA-256, each once, and
// the log, by which files can be put back.
// Format: docs/formats/files.md.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sandbox/file_entry.h"
#include "sandbox/file_log.h"
#include "sandbox_workers/base/history_limits.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/protocol/context_version.h"
#include "storage/storage.h"
#include "wasi/tree_state.h"

namespace sw::sandbox {

inline constexpr storage::TableId kEntriesTable = 0x20;
inline constexpr storage::TableId kContentsTable = 0x21;

/// Threads: one at a time.
class FileStore {
 public:
  /// Loads the files into a new tree, which gets the limits once they are in it.
  /// Errors: kCorrupt naming the file whose content is missing or damaged.
  static Result<FileStore> load(storage::ObjectStorage& storage, const wasi::TreeLimits& limits,
                                std::uint64_t now_ns, const FileHistoryLimits& log_limits = {});

  /// Erases the log of files that nobody uses, and the contents that only it needs.
  static Result<void> forget_log(storage::Transaction& transaction);

  const std::shared_ptr<wasi::Tree>& tree() const { return tree_; }

  using Entry = FileEntry;
  struct Change {
    std::string path;  ///< below /workspace
    std::optional<Entry> before;
    std::optional<Entry> after;
  };

  /// Who needs a content.
  struct ContentUse {
    std::int64_t files = 0;
    std::int64_t log = 0;     ///< entries in the log's rows
    std::uint64_t bytes = 0;  ///< its size

    bool is_needed() const { return files > 0 || log > 0; }
    /// What the log alone keeps.
    std::uint64_t log_bytes() const { return files > 0 || log == 0 ? 0 : bytes; }
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
    std::map<std::string, ContentUse> uses_;             // those that change, as they will be
    std::vector<std::string> new_contents_;
    std::vector<std::string> old_contents_;
    std::uint64_t log_bytes_ = 0;
    FileLog::Change log_;
    wasi::TreeState state_;
  };
  /// In the time of what changed.
  Changes changes();
  /// They are part of what a step did, which ended.
  void end_step(Changes& changes, const ContextStep& step) const {
    log_.end_step(changes.log_, step);
  }
  /// A new context has the steps of another up to one.
  void inherit_steps(Changes& changes, const ContextStep& from, const std::string& heir) const {
    log_.inherit(changes.log_, from, heir);
  }
  /// The transaction that wrote `changes` is committed.
  void written(Changes changes);
  void forget_steps(std::string_view context) { log_.forget_steps(context); }

  const FileLog& log() const { return log_; }
  /// What differs from a state that can be put back, at most kDifferingFilesMax of it. Reads no file.
  VersionFiles differences_to(std::uint64_t state) const;
  /// Makes the tree what it was in a state that can be put back. What has the same content keeps its
  /// times. After an error it is neither.
  /// Errors: those of a limit; kCorrupt naming the file whose content is missing or damaged.
  Result<VersionFiles> put_back(storage::ObjectStorage& storage, std::uint64_t state,
                                std::uint64_t now_ns);

 private:
  using TreeEntries = std::vector<std::pair<std::string, wasi::TreeState::Entry>>;

  FileStore() = default;
  Result<void> load_entries(storage::Reader& reader, TreeEntries& entries);
  Result<void> load_uses(storage::Reader& reader);
  std::optional<Entry> stored_entry(std::string_view path,
                                    const wasi::TreeState::Entry* stored) const;
  void use(Changes& changes, const std::string& digest, const ContentUse& more) const;
  void use(Changes& changes, const FileLog::Row& row, int rows) const;
  void log_changes(Changes& changes) const;
  Result<wasi::TreeState> state_of(storage::Reader& reader, std::uint64_t state) const;

  std::shared_ptr<wasi::Tree> tree_;                         // shared with the runs
  wasi::TreeState stored_;                                   // what the storage has
  std::map<std::string, std::string, std::less<>> digests_;  // of the stored files, by path
  std::map<std::string, ContentUse> uses_;                   // of the stored contents, by digest
  FileHistoryLimits log_limits_;
  std::uint64_t log_bytes_ = 0;  // of its rows, and of what it alone keeps
  FileLog log_;
};

}  // namespace sw::sandbox
