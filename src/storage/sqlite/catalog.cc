// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/catalog.h"

#include <fmt/format.h>

#include "storage/sqlite/object_file.h"

namespace sw::storage {

namespace {

// AUTOINCREMENT: a number is not given again after its row was deleted.
// state: 0 reserved, 1 its first commit may be on disk, 2 confirmed. The step from 0 to 1 is what
// makes `settle` write something in any case: a commit that changes no byte is not synced.
const std::vector<std::string>& catalog_formats() {
  static const std::vector<std::string> steps = {
      "CREATE TABLE object (file INTEGER PRIMARY KEY AUTOINCREMENT, class BLOB NOT NULL, id BLOB "
      "NOT NULL,"
      "  state INTEGER NOT NULL, alarm INTEGER, UNIQUE (class, id));"
      "CREATE INDEX object_by_alarm ON object (alarm, file) WHERE alarm IS NOT NULL;"
      "CREATE INDEX object_unconfirmed ON object (file) WHERE state < 2;"
      "CREATE TABLE garbage (file INTEGER PRIMARY KEY);"
      "CREATE TABLE folder (epoch INTEGER NOT NULL);"
      "INSERT INTO folder VALUES (0);",
  };
  return steps;
}

/// Damage is looked for at once, while the catalog can still be made anew from the objects.
Result<void> check_whole(Connection& connection, const std::filesystem::path& path) {
  const auto damaged = [&](std::string_view what) {
    return Error{ErrorCode::kCorrupt, fmt::format("{} is damaged: {}", path.native(), what), 0};
  };
  SW_TRY(const std::int64_t rows,
         connection.number("SELECT count(*) FROM folder WHERE epoch >= 0"));
  if (rows != 1) return damaged("its own row is missing");
  SW_TRY(Statement check, connection.prepare("PRAGMA quick_check(1)"));
  SW_TRY(const bool row, check.step());
  if (!row || check.text(0) != "ok") return damaged(row ? check.text(0) : "it cannot be checked");
  return {};
}

void bind_time(Statement& statement, int index, std::optional<Time> time) {
  if (time) {
    statement.bind(index, std::int64_t{time->time_since_epoch().count()});
  } else {
    statement.bind_null(index);
  }
}

}  // namespace

Result<std::unique_ptr<Catalog>> Catalog::open(const std::filesystem::path& path,
                                               const std::string& vfs) {
  SW_TRY(auto connection, Connection::open(path, Connection::Mode::kCreate, vfs));
  SW_TRY(const std::int64_t pages, connection->number("PRAGMA page_count"));
  if (pages == 0) SW_CHECK_OK(prepare_new_database(*connection));
  SW_CHECK_OK(configure(*connection));
  SW_CHECK_OK(check_ours(*connection));
  {
    RollbackGuard guard(*connection);
    SW_CHECK_OK(connection->execute("BEGIN IMMEDIATE"));
    SW_CHECK_OK(migrate(*connection, catalog_formats()));
    SW_CHECK_OK(connection->execute("COMMIT"));
  }
  SW_CHECK_OK(check_whole(*connection, path));
  return std::unique_ptr<Catalog>(new Catalog(std::move(connection)));
}

Result<void> Catalog::make_durable(Durable durable) {
  if (durable == durable_) return {};
  SW_CHECK_OK(connection_->execute(durable == Durable::kYes ? "PRAGMA synchronous = FULL"
                                                            : "PRAGMA synchronous = NORMAL"));
  durable_ = durable;
  return {};
}

Result<std::vector<Catalog::Entry>> Catalog::entries(Statement& select) {
  std::vector<Entry> found;
  for (;;) {
    SW_TRY(const bool row, select.step());
    if (!row) return found;
    Entry entry{
        select.integer(0), {select.text(1), select.text(2)}, select.integer(3) != 0, std::nullopt};
    if (!select.is_null(4)) entry.alarm = Time(std::chrono::milliseconds(select.integer(4)));
    found.push_back(std::move(entry));
  }
}

Result<std::int64_t> Catalog::next_epoch() {
  const MutexLock lock(mutex_);
  SW_CHECK_OK(make_durable(Durable::kYes));
  SW_CHECK_OK(connection_->execute("UPDATE folder SET epoch = epoch + 1"));
  return connection_->number("SELECT epoch FROM folder");
}

Result<std::optional<Catalog::Entry>> Catalog::find(const ObjectName& name) {
  const MutexLock lock(mutex_);
  SW_TRY(Statement select,
         connection_->prepare("SELECT file, class, id, state = 2, alarm FROM object"
                              " WHERE class = ?1 AND id = ?2"));
  select.bind(1, name.class_name).bind(2, name.id);
  SW_TRY(auto found, entries(select));
  return found.empty() ? std::nullopt : std::optional(std::move(found.front()));
}

Result<std::vector<Catalog::Entry>> Catalog::list(std::string_view class_name,
                                                  std::string_view after_id,
                                                  std::size_t count_max) {
  const MutexLock lock(mutex_);
  SW_TRY(Statement select,
         connection_->prepare("SELECT file, class, id, state = 2, alarm FROM object"
                              " WHERE class = ?1 AND id > ?2 AND state = 2 ORDER BY id LIMIT ?3"));
  select.bind(1, class_name).bind(2, after_id).bind(3, static_cast<std::int64_t>(count_max));
  return entries(select);
}

Result<std::vector<Catalog::Entry>> Catalog::unconfirmed() {
  const MutexLock lock(mutex_);
  SW_TRY(
      Statement select,
      connection_->prepare("SELECT file, class, id, state = 2, alarm FROM object WHERE state < 2"));
  return entries(select);
}

Result<std::vector<Catalog::Entry>> Catalog::all() {
  const MutexLock lock(mutex_);
  SW_TRY(Statement select,
         connection_->prepare(
             "SELECT file, class, id, state = 2, alarm FROM object WHERE state = 2 ORDER BY file"));
  return entries(select);
}

Result<std::vector<Catalog::Entry>> Catalog::alarms_after(Time time, FileNumber file, Time until,
                                                          std::size_t count_max) {
  const MutexLock lock(mutex_);
  SW_TRY(Statement select,
         connection_->prepare(
             "SELECT file, class, id, state = 2, alarm FROM object"
             " WHERE (alarm, file) > (?1, ?2) AND alarm <= ?3 ORDER BY alarm, file LIMIT ?4"));
  bind_time(select, 1, time);
  select.bind(2, file);
  bind_time(select, 3, until);
  select.bind(4, static_cast<std::int64_t>(count_max));
  return entries(select);
}

Result<FileNumber> Catalog::reserve(const ObjectName& name) {
  const MutexLock lock(mutex_);
  SW_CHECK_OK(make_durable(Durable::kNo));
  SW_TRY(Statement insert,
         connection_->prepare(
             "INSERT INTO object (class, id, state) VALUES (?1, ?2, 0) RETURNING file"));
  insert.bind(1, name.class_name).bind(2, name.id);
  SW_TRY(const bool row, insert.step());
  const FileNumber file = row ? insert.integer(0) : 0;
  SW_CHECK_OK(insert.run());  // a statement commits by itself at its end only
  return file;
}

Result<void> Catalog::release(FileNumber file) {
  const MutexLock lock(mutex_);
  SW_CHECK_OK(make_durable(Durable::kNo));
  SW_TRY(Statement remove,
         connection_->prepare("DELETE FROM object WHERE file = ?1 AND state = 0"));
  return remove.bind(1, file).run();
}

Result<void> Catalog::skip_to(FileNumber number) {
  const MutexLock lock(mutex_);
  SW_CHECK_OK(make_durable(Durable::kNo));
  SW_TRY(
      Statement update,
      connection_->prepare("UPDATE sqlite_sequence SET seq = max(seq, ?1) WHERE name = 'object'"));
  return update.bind(1, number).run();
}

Result<void> Catalog::adopt(const Entry& entry) {
  const MutexLock lock(mutex_);
  SW_CHECK_OK(make_durable(Durable::kNo));
  SW_TRY(Statement insert, connection_->prepare("INSERT INTO object (file, class, id, state, alarm)"
                                                " VALUES (?1, ?2, ?3, 2, ?4)"));
  insert.bind(1, entry.file).bind(2, entry.name.class_name).bind(3, entry.name.id);
  bind_time(insert, 4, entry.alarm);
  return insert.run();
}

Result<void> Catalog::confirm(FileNumber file) {
  const MutexLock lock(mutex_);
  SW_CHECK_OK(make_durable(Durable::kNo));
  SW_TRY(Statement update, connection_->prepare("UPDATE object SET state = 2 WHERE file = ?1"));
  return update.bind(1, file).run();
}

Result<void> Catalog::settle(FileNumber file, std::optional<Time> alarm) {
  const MutexLock lock(mutex_);
  SW_CHECK_OK(make_durable(Durable::kYes));
  SW_TRY(Statement update,
         connection_->prepare("UPDATE object SET state = 1, alarm = ?2 WHERE file = ?1"));
  update.bind(1, file);
  bind_time(update, 2, alarm);
  return update.run();
}

Result<void> Catalog::lower_alarm(FileNumber file, Time time) {
  const MutexLock lock(mutex_);
  {
    SW_TRY(Statement select,
           connection_->prepare("SELECT 1 FROM object WHERE file = ?1 AND alarm <= ?2"));
    select.bind(1, file);
    bind_time(select, 2, time);
    SW_TRY(const bool early_enough, select.step());
    if (early_enough) return {};
  }
  SW_CHECK_OK(make_durable(Durable::kYes));
  SW_TRY(Statement update, connection_->prepare("UPDATE object SET alarm = ?2 WHERE file = ?1"));
  update.bind(1, file);
  bind_time(update, 2, time);
  return update.run();
}

Result<void> Catalog::set_alarm(FileNumber file, std::optional<Time> alarm) {
  const MutexLock lock(mutex_);
  SW_CHECK_OK(make_durable(Durable::kNo));
  SW_TRY(Statement update,
         connection_->prepare("UPDATE object SET alarm = ?2 WHERE file = ?1 AND alarm IS NOT ?2"));
  update.bind(1, file);
  bind_time(update, 2, alarm);
  return update.run();
}

Result<void> Catalog::drop(FileNumber file) {
  const MutexLock lock(mutex_);
  SW_CHECK_OK(make_durable(Durable::kYes));
  RollbackGuard guard(*connection_);
  SW_CHECK_OK(connection_->execute("BEGIN IMMEDIATE"));
  {
    SW_TRY(Statement insert,
           connection_->prepare("INSERT OR IGNORE INTO garbage (file) VALUES (?1)"));
    SW_CHECK_OK(insert.bind(1, file).run());
    SW_TRY(Statement remove, connection_->prepare("DELETE FROM object WHERE file = ?1"));
    SW_CHECK_OK(remove.bind(1, file).run());
  }
  return connection_->execute("COMMIT");
}

Result<std::vector<FileNumber>> Catalog::garbage() {
  const MutexLock lock(mutex_);
  std::vector<FileNumber> files;
  SW_TRY(Statement select, connection_->prepare("SELECT file FROM garbage"));
  for (;;) {
    SW_TRY(const bool row, select.step());
    if (!row) return files;
    files.push_back(select.integer(0));
  }
}

Result<void> Catalog::collected(FileNumber file) {
  const MutexLock lock(mutex_);
  SW_CHECK_OK(make_durable(Durable::kNo));
  SW_TRY(Statement remove, connection_->prepare("DELETE FROM garbage WHERE file = ?1"));
  return remove.bind(1, file).run();
}

}  // namespace sw::storage
