// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What a handle to an object does.

#include <fmt/format.h>

#include <utility>

#include "storage/sqlite/sqlite_storage_impl.h"

namespace sw::storage {

namespace {

std::function<Result<void>(Transaction&)> nothing() {
  return [](Transaction&) { return Result<void>(); };
}

}  // namespace

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

}  // namespace sw::storage
