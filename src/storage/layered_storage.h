// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Storage over layers of rows and a log of commits, wherever these are.

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/thread_safety.h"
#include "storage/commit_log.h"
#include "storage/directory.h"
#include "storage/layered_transaction.h"
#include "storage/layers.h"
#include "storage/storage.h"

namespace sw::storage {

/// How often the body of a read or a transaction runs. Twice, the first time undone, is what a
/// database that resolves conflicts may do: for tests of whatever uses a storage.
enum class Bodies : std::uint8_t { kOnce, kTwice };

/// Threads: any.
class LayeredStorage : public Storage {
 public:
  /// Both outlive it.
  LayeredStorage(Layers& layers, CommitLog& log, Bodies bodies = Bodies::kOnce);
  ~LayeredStorage() override;

  /// Reads the counters; before anything else. `epoch` is at least that.
  Result<void> start(std::uint64_t epoch);

  Result<std::unique_ptr<ObjectStorage>> open(const ObjectName& name,
                                              const Schema& schema) override;
  Result<std::optional<ObjectInfo>> find(const ObjectName& name) override;
  Result<std::vector<ObjectInfo>> list(std::string_view class_name, std::string_view after_id,
                                       std::size_t count_max) override;
  Result<void> remove(const ObjectName& name) override;
  Result<void> change(const Changes& changes) override;
  Result<BackupReport> back_up(const std::filesystem::path& destination) override;
  Result<std::vector<DueAlarm>> alarms_until(Time until, std::size_t count_max) override;
  void on_alarm_set(std::function<void(Time)> listener) override;

  /// Reads the directory.
  Result<void> read_directory(const ReadBody& body);
  /// Changes the directory itself.
  Result<void> change_directory(const TransactionBody& body, Durability durability);
  /// Every relaxed change is on disk: says so in the directory.
  Result<void> forget_relaxed();

  /// Does a bounded part of merging the layers of objects that have too many. False: there is nothing
  /// to do.
  /// Errors: kUnavailable: it is tried again after the object's next copy; others: a layer cannot be
  /// read, and is left alone from now on.
  Result<bool> merge_some() SW_EXCLUDES(merge_mutex_);
  /// Ends a merge that is under way.
  void abandon_merge() SW_EXCLUDES(merge_mutex_);

 protected:
  /// There is something to merge. Does it at once, unless overridden. Called with nothing held.
  virtual void merge_soon();
  /// Whether there is space for that much, and more.
  virtual bool has_room_for(std::uint64_t /*bytes*/) const { return true; }

 private:
  class Object;
  class Held;
  class Handle;
  class Record;
  class Attempt;
  class DirectoryChange;
  class ObjectsChange;
  class LayerMerge;
  using ObjectPtr = std::shared_ptr<Object>;

  ObjectPtr object(const ObjectName& name) SW_EXCLUDES(objects_mutex_);
  std::uint64_t next_generation() { return epoch_ << 32U | ++opens_; }
  /// Reads what is not known of an object. It is held.
  Result<void> load(Object& object);
  Result<void> load_entry(Object& object) SW_EXCLUDES(directory_mutex_);
  Result<std::unique_ptr<PendingCommit>> commit(const std::vector<Attempt*>& attempts,
                                                Durability durability);
  Result<std::unique_ptr<PendingCommit>> commit_rows(const std::vector<Attempt*>& attempts,
                                                     Durability durability);
  Result<std::unique_ptr<PendingCommit>> commit_with_directory(
      const std::vector<Attempt*>& attempts, std::vector<ObjectEntry> after, Durability durability);
  Result<void> change(const Changes& changes, std::optional<std::uint64_t> keep_owner);
  void merge_wanted(const std::vector<ObjectName>& names) SW_EXCLUDES(deep_mutex_);
  Result<void> begin_merge(const ObjectName& name) SW_REQUIRES(merge_mutex_);
  Result<std::vector<LayerPtr>> choose_layers(Reader& directory, const ObjectEntry& entry)
      SW_REQUIRES(merge_mutex_);
  /// Deletes a layer that others were to be merged into.
  Result<void> drop_unfinished_merge();
  void tell_alarm(Time time) SW_EXCLUDES(listener_mutex_);

  Layers& layers_;
  CommitLog& log_;
  const Bodies bodies_;
  const LayerPtr directory_;  // shared with the records that change it
  std::uint64_t epoch_ = 0;
  std::atomic<std::uint64_t> opens_{0};

  Mutex objects_mutex_;
  // Shared with the handles: one that outlives the next open has to notice it.
  std::map<ObjectName, std::weak_ptr<Object>> objects_ SW_GUARDED_BY(objects_mutex_);

  // Held from reading the directory to adding what changes it to the log.
  Mutex directory_mutex_;
  std::uint64_t next_layer_ SW_GUARDED_BY(directory_mutex_) = 1;
  std::atomic<bool> epoch_written_{false};
  std::set<ObjectName> relaxed_ SW_GUARDED_BY(directory_mutex_);  // marked so in the directory

  Mutex deep_mutex_;
  std::deque<ObjectName> deep_ SW_GUARDED_BY(deep_mutex_);  // that may have too many layers

  Mutex merge_mutex_;                                              // one merge at a time
  std::unique_ptr<LayerMerge> merge_ SW_GUARDED_BY(merge_mutex_);  // null: none is under way
  std::set<LayerNumber> unreadable_ SW_GUARDED_BY(merge_mutex_);   // cannot be merged

  Mutex listener_mutex_;
  std::function<void(Time)> listener_ SW_GUARDED_BY(listener_mutex_);
};

}  // namespace sw::storage
