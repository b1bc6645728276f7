// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/sqlite_storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

#include "base/thread_safety.h"
#include "storage/sqlite/catalog.h"
#include "storage/sqlite/data_folder.h"
#include "storage/sqlite/idle_files.h"
#include "storage/sqlite/object_file.h"

namespace sw::storage {

namespace {

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

std::function<Result<void>(Transaction&)> nothing() {
  return [](Transaction&) { return Result<void>(); };
}

// ---- SqliteObject

Result<void> SqliteObject::check_owner() const {
  if (ownership_->generation == generation_) return {};
  return Error{ErrorCode::kConflict,
               fmt::format("{} is now owned by another opener", to_string(name_)), 0};
}

Result<void> SqliteObject::locate() {
  if (located_) return {};
  SW_TRY(const auto entry, storage_.catalog().find(name_));
  number_ = 0;
  if (entry) {
    SW_TRY(const bool exists, entry->confirmed ? Result<bool>(true) : storage_.settle(*entry));
    if (exists) number_ = entry->file;
  }
  located_ = true;
  return {};
}

Result<void> SqliteObject::upgrade(ObjectFile& file, SqliteTransaction& transaction) {
  SW_TRY(const std::int64_t version, file.schema_version());
  const auto known = static_cast<std::int64_t>(schema_.steps.size());
  if (version < 0 || version > known) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} has schema version {}, but this program supports at most {}: it "
                             "was written by a newer version",
                             to_string(name_), version, known),
                 0};
  }
  for (std::int64_t step = version; step < known; ++step) {
    auto done = schema_.steps[static_cast<std::size_t>(step)](transaction);
    if (!done.ok()) {
      return std::move(done).error().while_doing(
          fmt::format("bringing {} to schema version {}", to_string(name_), step + 1));
    }
  }
  if (version != known) SW_CHECK_OK(file.set_schema_version(known));
  return {};
}

// A transaction of its own, so that reading needs none that writes.
Result<void> SqliteObject::upgrade_existing(ObjectFile& file) {
  if (upgraded_) return {};
  SW_TRY(const std::int64_t version, file.schema_version());
  if (version != static_cast<std::int64_t>(schema_.steps.size()))
    SW_CHECK_OK(change(file, nothing()));
  upgraded_ = true;
  return {};
}

void SqliteObject::give_back(std::unique_ptr<ObjectFile> file, const Result<void>& outcome) {
  // A connection that met trouble is closed: the next one starts from what is on the disk.
  const bool trouble = !outcome.ok() && (outcome.error().code == ErrorCode::kUnavailable ||
                                         outcome.error().code == ErrorCode::kCorrupt ||
                                         outcome.error().code == ErrorCode::kInternal);
  if (!trouble) storage_.idle().put_back(number_, std::move(file));
}

Result<void> SqliteObject::read(const std::function<Result<void>(Reader&)>& body) {
  const MutexLock lock(ownership_->use);
  SW_CHECK_OK(check_owner());
  SW_CHECK_OK(locate());
  if (number_ == 0) return read_nothing(body);
  SW_TRY(auto file, storage_.open_file(number_));
  auto outcome = upgrade_existing(*file);
  if (outcome.ok()) outcome = read_from(*file, body);
  give_back(std::move(file), outcome);
  return outcome;
}

Result<void> SqliteObject::read_from(ObjectFile& file,
                                     const std::function<Result<void>(Reader&)>& body) {
  RollbackGuard guard(file.connection());
  SW_CHECK_OK(file.connection().execute("BEGIN"));
  SqliteTransaction transaction(file);
  SW_CHECK_OK(body(transaction));
  if (transaction.failure()) return *transaction.failure();
  return {};
}

Result<void> SqliteObject::read_nothing(const std::function<Result<void>(Reader&)>& body) {
  SW_TRY(auto file, ObjectFile::in_memory());
  RollbackGuard guard(file->connection());
  SW_CHECK_OK(file->connection().execute("BEGIN"));
  SW_CHECK_OK(file->initialize(name_));
  SqliteTransaction transaction(*file);
  SW_CHECK_OK(upgrade(*file, transaction));
  SW_CHECK_OK(body(transaction));
  if (transaction.failure()) return *transaction.failure();
  return {};
}

Result<void> SqliteObject::transact(const std::function<Result<void>(Transaction&)>& body) {
  const MutexLock lock(ownership_->use);
  SW_CHECK_OK(check_owner());
  SW_CHECK_OK(locate());
  if (number_ == 0) return create(body);
  SW_TRY(auto file, storage_.open_file(number_));
  auto outcome = change(*file, body);
  give_back(std::move(file), outcome);
  return outcome;
}

Result<void> SqliteObject::change(ObjectFile& file,
                                  const std::function<Result<void>(Transaction&)>& body) {
  RollbackGuard guard(file.connection());
  SW_CHECK_OK(file.connection().execute("BEGIN IMMEDIATE"));
  SqliteTransaction transaction(file);
  if (!upgraded_) SW_CHECK_OK(upgrade(file, transaction));
  SW_CHECK_OK(body(transaction));
  if (transaction.failure()) return *transaction.failure();
  const auto& alarm = transaction.new_alarm();
  if (alarm && *alarm) SW_CHECK_OK(storage_.catalog().lower_alarm(number_, **alarm));
  SW_CHECK_OK(file.connection().execute("COMMIT"));
  upgraded_ = true;
  if (alarm) {
    // The commit is done. A catalog that cannot be told looks at the object too early, which harms
    // nothing.
    (void)storage_.catalog().set_alarm(number_, *alarm).ok();
  }
  return {};
}

Result<void> SqliteObject::create(const std::function<Result<void>(Transaction&)>& body) {
  SW_TRY(const FileNumber number, storage_.reserve(name_));
  auto created = storage_.create_file(number);
  if (!created.ok()) {
    (void)storage_.drop(number).ok();
    return std::move(created).error();
  }
  std::unique_ptr<ObjectFile> file = *std::move(created);
  auto committed = fill(*file, number, body);
  if (committed.ok() && *committed) {
    number_ = number;
    upgraded_ = true;
    // Not told, the next start looks into the file and finds the commit.
    (void)storage_.catalog().confirm(number).ok();
    storage_.idle().put_back(number, std::move(file));
    return {};
  }
  file.reset();
  const auto dropped = storage_.drop(number);
  // If not even that is possible, this handle is at a loss about what there is: the next use looks
  // again.
  located_ = dropped.ok();
  if (!committed.ok()) return std::move(committed).error();
  return {};
}

// True: committed. False: the body did nothing that would bring an object into being.
Result<bool> SqliteObject::fill(ObjectFile& file, FileNumber number,
                                const std::function<Result<void>(Transaction&)>& body) {
  RollbackGuard guard(file.connection());
  SW_CHECK_OK(file.connection().execute("BEGIN IMMEDIATE"));
  SW_CHECK_OK(file.initialize(name_));
  SqliteTransaction steps(file);
  SW_CHECK_OK(upgrade(file, steps));
  if (steps.failure()) return *steps.failure();
  SqliteTransaction transaction(file);
  SW_CHECK_OK(body(transaction));
  if (transaction.failure()) return *transaction.failure();
  if (!transaction.wrote()) return false;
  SW_TRY(const auto alarm, transaction.alarm());
  SW_CHECK_OK(storage_.catalog().settle(number, alarm));
  SW_CHECK_OK(file.connection().execute("COMMIT"));
  return true;
}

Result<void> SqliteObject::destroy() {
  const MutexLock lock(ownership_->use);
  SW_CHECK_OK(check_owner());
  SW_CHECK_OK(locate());
  if (number_ == 0) return {};
  // Whatever becomes of it, the next use looks again at what there is.
  const FileNumber number = std::exchange(number_, 0);
  located_ = false;
  upgraded_ = false;
  return storage_.drop(number);
}

// ---- SqliteStorage

Result<void> SqliteStorage::start() {
  SW_CHECK_OK(open_catalog());
  SW_TRY(const std::int64_t epoch, catalog_->next_epoch());
  epoch_ = static_cast<std::uint64_t>(epoch);
  SW_CHECK_OK(collect_garbage());
  return settle_unconfirmed();
}

Result<void> SqliteStorage::open_catalog() {
  std::error_code error;
  // An empty one knows nothing of the objects there are.
  const bool exists = std::filesystem::file_size(folder_.catalog(), error) > 0 && !error;
  auto opened = Catalog::open(folder_.catalog(), options_.vfs);
  if (opened.ok() && exists) {
    catalog_ = *std::move(opened);
    return {};
  }
  if (!opened.ok()) {
    // (kInternal: what SQLite says of a file that it takes for one of its own and that makes no
    // sense.)
    const ErrorCode code = opened.error().code;
    if (code != ErrorCode::kCorrupt && code != ErrorCode::kInternal)
      return std::move(opened).error();
    notice(opened.error().message + "; rebuilding it from the objects");
    std::filesystem::rename(folder_.catalog(), folder_.catalog().native() + ".damaged", error);
    if (error) return errno_error(error.value(), "setting the damaged catalog aside");
    SW_CHECK_OK(delete_database(folder_.catalog(), options_.vfs));
    SW_TRY(catalog_, Catalog::open(folder_.catalog(), options_.vfs));
  } else {
    catalog_ = *std::move(opened);
  }
  return rebuild_catalog();
}

Result<FileNumber> SqliteStorage::reserve(const ObjectName& name) {
  SW_TRY(FileNumber number, catalog_->reserve(name));
  std::error_code error;
  if (!std::filesystem::exists(folder_.object(number), error)) return number;
  // The catalog forgot that number: its file may be somebody's, whatever the catalog says.
  SW_TRY(const auto files, folder_.object_files());
  SW_CHECK_OK(catalog_->release(number));
  SW_CHECK_OK(catalog_->skip_to(*std::max_element(files.begin(), files.end())));
  return catalog_->reserve(name);
}

Result<void> SqliteStorage::rebuild_catalog() {
  SW_TRY(auto files, folder_.object_files());
  // Of two lives of one object the later one counts: the other's deletion was not finished.
  std::sort(files.begin(), files.end(), std::greater<>());
  for (const FileNumber number : files) {
    auto file = open_file(number);
    if (!file.ok()) {
      notice(file.error().message);
      continue;
    }
    auto self = (*file)->self();
    if (!self.ok()) {
      notice(self.error().message);
      continue;
    }
    if (!*self) continue;
    SW_TRY(const auto known, catalog_->find((*self)->name));
    if (known) {
      file->reset();
      SW_CHECK_OK(delete_database(folder_.object(number), options_.vfs));
      continue;
    }
    SW_CHECK_OK(catalog_->adopt({number, (*self)->name, true, (*self)->alarm}));
  }
  return {};
}

Result<void> SqliteStorage::collect_garbage() {
  SW_TRY(const auto files, catalog_->garbage());
  for (const FileNumber number : files) {
    SW_CHECK_OK(delete_database(folder_.object(number), options_.vfs));
    SW_CHECK_OK(catalog_->collected(number));
  }
  return {};
}

// Creations that a crash interrupted: each has its commit or has not.
Result<void> SqliteStorage::settle_unconfirmed() {
  SW_TRY(const auto entries, catalog_->unconfirmed());
  for (const Catalog::Entry& entry : entries) {
    SW_TRY([[maybe_unused]] const bool exists, settle(entry));
  }
  return {};
}

Result<bool> SqliteStorage::settle(const Catalog::Entry& entry) {
  std::optional<ObjectFile::Self> self;
  std::error_code error;
  if (std::filesystem::exists(folder_.object(entry.file), error)) {
    auto file = open_file(entry.file);
    // Damaged here means: never finished. The commit makes the file whole before the object counts
    // as created.
    if (!file.ok() && file.error().code != ErrorCode::kCorrupt) return std::move(file).error();
    if (file.ok()) {
      SW_TRY(self, (*file)->self());
    }
  }
  if (!self) {
    SW_CHECK_OK(drop(entry.file));
    return false;
  }
  SW_CHECK_OK(catalog_->settle(entry.file, self->alarm));
  SW_CHECK_OK(catalog_->confirm(entry.file));
  return true;
}

std::shared_ptr<Ownership> SqliteStorage::ownership(const ObjectName& name) {
  const MutexLock lock(owners_mutex_);
  std::weak_ptr<Ownership>& known = owners_[name];
  if (auto ownership = known.lock()) return ownership;
  // The last one to let go removes the entry, unless somebody has put a new one there by then.
  std::shared_ptr<Ownership> ownership(new Ownership, [this, name](Ownership* gone) {
    const std::unique_ptr<Ownership> deleter(gone);
    const MutexLock owners_lock(owners_mutex_);
    const auto found = owners_.find(name);
    if (found != owners_.end() && found->second.expired()) owners_.erase(found);
  });
  known = ownership;
  return ownership;
}

std::uint64_t SqliteStorage::next_generation() { return epoch_ << 32U | ++opens_; }

Result<std::unique_ptr<ObjectFile>> SqliteStorage::open_file(FileNumber number) {
  if (auto file = idle_.take(number)) return file;
  return ObjectFile::open(folder_.object(number), options_.vfs);
}

Result<std::unique_ptr<ObjectFile>> SqliteStorage::create_file(FileNumber number) {
  SW_CHECK_OK(folder_.make_room_for(number));
  return ObjectFile::create(folder_.object(number), options_.vfs);
}

Result<void> SqliteStorage::drop(FileNumber number) {
  SW_CHECK_OK(catalog_->drop(number));
  idle_.take(number).reset();
  // From here on the object is gone; what cannot be deleted now is deleted at the next start.
  if (delete_database(folder_.object(number), options_.vfs).ok())
    (void)catalog_->collected(number).ok();
  return {};
}

Result<std::unique_ptr<ObjectStorage>> SqliteStorage::open(const ObjectName& name,
                                                           const Schema& schema) {
  SW_CHECK_OK(check_name(name));
  std::shared_ptr<Ownership> owner = ownership(name);
  const std::uint64_t generation = next_generation();
  {
    const MutexLock lock(owner->use);
    owner->generation = std::max(owner->generation, generation);
  }
  return std::unique_ptr<ObjectStorage>(
      std::make_unique<SqliteObject>(*this, name, schema, std::move(owner), generation));
}

Result<std::optional<ObjectInfo>> SqliteStorage::find(const ObjectName& name) {
  SW_CHECK_OK(check_name(name));
  SW_TRY(auto entry, catalog_->find(name));
  if (!entry || !entry->confirmed) return std::optional<ObjectInfo>();
  return std::optional<ObjectInfo>(ObjectInfo{std::move(entry->name), entry->alarm});
}

Result<std::vector<ObjectInfo>> SqliteStorage::list(std::string_view class_name,
                                                    std::string_view after_id,
                                                    std::size_t count_max) {
  SW_TRY(auto entries, catalog_->list(class_name, after_id, count_max));
  std::vector<ObjectInfo> found;
  found.reserve(entries.size());
  for (Catalog::Entry& entry : entries) found.push_back({std::move(entry.name), entry.alarm});
  return found;
}

Result<void> SqliteStorage::remove(const ObjectName& name) {
  SW_CHECK_OK(check_name(name));
  const std::shared_ptr<Ownership> owner = ownership(name);
  const MutexLock lock(owner->use);
  SW_TRY(const auto entry, catalog_->find(name));
  if (!entry) return Error{ErrorCode::kNotFound, fmt::format("no object {}", to_string(name)), 0};
  owner->generation = next_generation();
  return drop(entry->file);
}

// What the object's own file says, and the catalog from then on.
Result<std::optional<Time>> SqliteStorage::true_alarm(const Catalog::Entry& entry) {
  const std::shared_ptr<Ownership> owner = ownership(entry.name);
  const MutexLock lock(owner->use);
  SW_TRY(const auto current, catalog_->find(entry.name));
  if (!current || current->file != entry.file || !current->confirmed) return std::optional<Time>();
  SW_TRY(auto file, open_file(entry.file));
  SW_TRY(auto self, file->self());
  idle_.put_back(entry.file, std::move(file));
  const std::optional<Time> alarm = self ? self->alarm : std::nullopt;
  SW_CHECK_OK(catalog_->set_alarm(entry.file, alarm));
  return alarm;
}

Result<std::vector<DueAlarm>> SqliteStorage::alarms_until(Time until, std::size_t count_max) {
  std::vector<DueAlarm> due;
  Time after = Time::min();
  FileNumber after_file = 0;
  while (due.size() < count_max) {
    SW_TRY(auto entries, catalog_->alarms_after(after, after_file, until, count_max - due.size()));
    if (entries.empty()) break;
    for (Catalog::Entry& entry : entries) {
      after = *entry.alarm;
      after_file = entry.file;
      auto alarm = true_alarm(entry);
      if (!alarm.ok()) {
        // One damaged object must not keep the others' alarms from going off.
        notice(alarm.error().message);
      } else if (*alarm == entry.alarm) {
        due.push_back({std::move(entry.name), **alarm});
      } else {
        break;  // it is listed at its true time now: go on from here by what the catalog says
      }
    }
  }
  return due;
}

}  // namespace

Result<std::unique_ptr<Storage>> open_sqlite_storage(const std::filesystem::path& folder,
                                                     SqliteOptions options) {
  SW_TRY(DataFolder owned, DataFolder::own(folder));
  auto storage = std::make_unique<SqliteStorage>(std::move(owned), std::move(options));
  SW_CHECK_OK(storage->start());
  return std::unique_ptr<Storage>(std::move(storage));
}

}  // namespace sw::storage
