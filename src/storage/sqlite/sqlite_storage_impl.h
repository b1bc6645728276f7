// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The storage and the handles that it gives out, which need each other.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/thread_safety.h"
#include "storage/sqlite/catalog.h"
#include "storage/sqlite/data_folder.h"
#include "storage/sqlite/idle_files.h"
#include "storage/sqlite/object_file.h"
#include "storage/sqlite/sqlite_storage.h"

namespace sw::storage {

// Who may change an object, shared by all handles to it.
struct Ownership {
  // Held through every transaction of the object and every change of its owner or its file: a
  // former owner's commit is over before the next owner reads, or does not happen.
  Mutex use;
  std::uint64_t generation SW_GUARDED_BY(use) = 0;  // the owner's
};

class SqliteStorage final : public Storage {
 public:
  SqliteStorage(DataFolder folder, SqliteOptions options)
      : folder_(std::move(folder)), options_(std::move(options)), idle_(options_.idle_open_max) {}

  Result<void> start();

  Result<std::unique_ptr<ObjectStorage>> open(const ObjectName& name,
                                              const Schema& schema) override;
  Result<std::optional<ObjectInfo>> find(const ObjectName& name) override;
  Result<std::vector<ObjectInfo>> list(std::string_view class_name, std::string_view after_id,
                                       std::size_t count_max) override;
  Result<void> remove(const ObjectName& name) override;
  Result<std::vector<DueAlarm>> alarms_until(Time until, std::size_t count_max) override;

  Catalog& catalog() { return *catalog_; }
  /// A number for a new object's file, which does not exist.
  Result<FileNumber> reserve(const ObjectName& name);
  IdleFiles& idle() { return idle_; }
  Result<std::unique_ptr<ObjectFile>> open_file(FileNumber number);
  Result<std::unique_ptr<ObjectFile>> create_file(FileNumber number);
  Result<void> drop(FileNumber number);
  /// Finds out whether an unconfirmed object's creation was committed, and makes the catalog say
  /// so.
  Result<bool> settle(const Catalog::Entry& entry);

 private:
  Result<void> open_catalog();
  Result<void> rebuild_catalog();
  Result<void> settle_unconfirmed();
  Result<void> collect_garbage();
  Result<std::optional<Time>> true_alarm(const Catalog::Entry& entry);
  std::shared_ptr<Ownership> ownership(const ObjectName& name);
  std::uint64_t next_generation();
  void notice(const std::string& text) const {
    if (options_.on_notice) options_.on_notice(text);
  }

  DataFolder folder_;
  const SqliteOptions options_;
  IdleFiles idle_;
  std::unique_ptr<Catalog> catalog_;
  std::uint64_t epoch_ = 0;
  std::atomic<std::uint64_t> opens_{0};
  Mutex owners_mutex_;
  // Shared with the handles: one that outlives the next open has to notice it.
  std::map<ObjectName, std::weak_ptr<Ownership>> owners_ SW_GUARDED_BY(owners_mutex_);
};

class SqliteObject final : public ObjectStorage {
 public:
  SqliteObject(SqliteStorage& storage, ObjectName name, Schema schema,
               std::shared_ptr<Ownership> ownership, std::uint64_t generation)
      : storage_(storage),
        name_(std::move(name)),
        schema_(std::move(schema)),
        ownership_(std::move(ownership)),
        generation_(generation) {}

  const ObjectName& name() const override { return name_; }
  std::uint64_t generation() const override { return generation_; }
  Result<void> read(const std::function<Result<void>(Reader&)>& body) override;
  Result<void> transact(const std::function<Result<void>(Transaction&)>& body) override;
  Result<void> destroy() override;

 private:
  Result<void> check_owner() const SW_REQUIRES(ownership_->use);
  Result<void> locate() SW_REQUIRES(ownership_->use);
  Result<void> upgrade(ObjectFile& file, SqliteTransaction& transaction);
  Result<void> upgrade_existing(ObjectFile& file) SW_REQUIRES(ownership_->use);
  Result<void> read_from(ObjectFile& file, const std::function<Result<void>(Reader&)>& body);
  Result<void> read_nothing(const std::function<Result<void>(Reader&)>& body);
  Result<void> change(ObjectFile& file, const std::function<Result<void>(Transaction&)>& body)
      SW_REQUIRES(ownership_->use);
  Result<void> create(const std::function<Result<void>(Transaction&)>& body)
      SW_REQUIRES(ownership_->use);
  Result<bool> fill(ObjectFile& file, FileNumber number,
                    const std::function<Result<void>(Transaction&)>& body);
  void give_back(std::unique_ptr<ObjectFile> file, const Result<void>& outcome)
      SW_REQUIRES(ownership_->use);

  SqliteStorage& storage_;
  const ObjectName name_;
  const Schema schema_;
  const std::shared_ptr<Ownership> ownership_;  // shared with other handles to the same object
  const std::uint64_t generation_;
  bool located_ SW_GUARDED_BY(ownership_->use) = false;
  FileNumber number_ SW_GUARDED_BY(ownership_->use) = 0;  // 0: there is no such object yet
  bool upgraded_ SW_GUARDED_BY(ownership_->use) = false;
};

}  // namespace sw::storage
