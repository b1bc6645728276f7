// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/thread_safety.h"
#include "storage/journal/journal.h"
#include "storage/layered_storage.h"
#include "storage/sqlite/data_folder.h"
#include "storage/sqlite/file_pool.h"
#include "storage/sqlite/sqlite_storage.h"

namespace sw::storage {

/// What the storage stands on.
struct DataFolderParts {
  DataFolderParts(DataFolder owned, const SqliteOptions& settings)
      : options(settings),
        folder(std::move(owned)),
        files(folder, options.vfs, options.idle_open_max),
        layers(files) {}

  void notice(const std::string& text) const {
    if (options.on_notice) options.on_notice(text);
  }

  const SqliteOptions options;
  const DataFolder folder;
  FilePool files;
  FileLayers layers;
  std::function<void(std::uint64_t)> on_journal_written;  // set once, before the first commit
  std::unique_ptr<Journal> journal;
};

class DataFolderStorage final : public LayeredStorage {
 public:
  /// Opens what is in the folder.
  static Result<std::unique_ptr<DataFolderStorage>> open(DataFolder folder,
                                                         const SqliteOptions& options);
  ~DataFolderStorage() override;

  /// Moves everything from the journal to the databases.
  Result<void> flush() SW_EXCLUDES(flush_mutex_);
  Result<BackupReport> back_up(const std::filesystem::path& destination) override
      SW_EXCLUDES(flush_mutex_);

 protected:
  void merge_soon() override SW_EXCLUDES(work_mutex_);
  bool has_room_for(std::uint64_t bytes) const override;

 private:
  class Flush;

  explicit DataFolderStorage(std::unique_ptr<DataFolderParts> parts);
  Result<void> close();
  Result<void> mark_damaged(const std::vector<LayerNumber>& layers);
  void journal_written(std::uint64_t bytes) SW_EXCLUDES(work_mutex_);
  void work() SW_EXCLUDES(work_mutex_);
  /// One after the other, each without the mutex.
  void flush_now() SW_REQUIRES(work_mutex_);
  void merge_now() SW_REQUIRES(work_mutex_);
  void start_worker() SW_REQUIRES(work_mutex_);
  Result<void> write_layers() SW_REQUIRES(flush_mutex_);

  // Given up last, as the handles' layers are in it. (The base has references to what it holds.)
  const std::unique_ptr<DataFolderParts> parts_;
  Mutex flush_mutex_;  // the databases are written, or read as they are: one at a time

  Mutex work_mutex_;
  CondVar work_changed_;
  bool flush_wanted_ SW_GUARDED_BY(work_mutex_) = false;
  bool merge_wanted_ SW_GUARDED_BY(work_mutex_) = false;
  bool stopping_ SW_GUARDED_BY(work_mutex_) = false;
  std::chrono::steady_clock::time_point not_before_ SW_GUARDED_BY(work_mutex_);
  std::thread worker_;  // started under work_mutex_, joined at the end
};

/// Makes sure that the directory's database can be used: it is made anew from the layers' if it is
/// lost or damaged, and one of an earlier version is converted.
Result<void> prepare_directory(DataFolderParts& parts);

/// Gives the layers what the journal's files hold, and deletes those that nobody has any more.
class JournalRecovery {
 public:
  explicit JournalRecovery(DataFolderParts& parts) : parts_(parts) {}
  void add(const JournalContent& content);
  /// Layers that are damaged from now on.
  Result<std::vector<LayerNumber>> finish();

 private:
  DataFolderParts& parts_;
  std::map<LayerNumber, Rows> rows_;
  std::vector<LayerNumber> damaged_;
};

}  // namespace sw::storage
