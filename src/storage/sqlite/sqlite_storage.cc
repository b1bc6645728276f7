// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/sqlite_storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "storage/sqlite/sqlite_storage_impl.h"

namespace sw::storage {

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

Result<std::unique_ptr<Storage>> open_sqlite_storage(const std::filesystem::path& folder,
                                                     SqliteOptions options) {
  SW_TRY(DataFolder owned, DataFolder::own(folder));
  auto storage = std::make_unique<SqliteStorage>(std::move(owned), std::move(options));
  SW_CHECK_OK(storage->start());
  return std::unique_ptr<Storage>(std::move(storage));
}

}  // namespace sw::storage
