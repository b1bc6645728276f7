// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/object_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace sw::storage {

namespace {

// Small pages: a step changes a few hundred bytes here and there, and every page touched is written
// whole.
constexpr std::size_t kPageBytes = 1024;
constexpr std::int64_t kApplicationId = 0x73627877;  // "sbxw"

// A row that does not fit into a quarter of a page is padded to a whole number of pages beyond what
// stays in the
// leaf: rewritten with another length it then still takes the same pages, and SQLite overwrites
// them in place instead of moving pages to and from its free list, which costs two more pages for
// each transaction.
constexpr std::size_t kUnpaddedBytesMax = kPageBytes / 4;
// beyond it, padding no longer matters
constexpr std::size_t kPaddedBytesMax = std::size_t{64} << 10U;
// of a long row, in a leaf of pages this size
constexpr std::size_t kLeafBytes = 104;
constexpr std::size_t kOverflowBytes = kPageBytes - 4;
constexpr std::size_t kRowHeaderBytes = 12;  // lengths and types of the columns, about

constexpr std::int64_t kCompactBytesMin = 4 << 20;

std::size_t padded_size(std::size_t key_bytes, std::size_t value_bytes, std::size_t stored_bytes) {
  if (value_bytes <= kUnpaddedBytesMax || value_bytes > kPaddedBytesMax) return value_bytes;
  const std::size_t others = key_bytes + kRowHeaderBytes;
  const std::size_t in_leaf = others < kLeafBytes ? kLeafBytes - others : 0;
  const std::size_t pages =
      value_bytes > in_leaf ? (value_bytes - in_leaf + kOverflowBytes - 1) / kOverflowBytes : 0;
  const std::size_t size = std::max(value_bytes, in_leaf + pages * kOverflowBytes);
  // A value that got a little shorter keeps its pages; those that stay all zero are not written
  // again.
  const std::size_t slack = std::max(size / 4, 2 * kOverflowBytes);
  return stored_bytes > size && stored_bytes <= size + slack ? stored_bytes : size;
}

std::int64_t to_number(Time time) { return time.time_since_epoch().count(); }
Time to_time(std::int64_t number) { return Time(std::chrono::milliseconds(number)); }

std::optional<Time> optional_time(const Statement& row, int column) {
  if (row.is_null(column)) return std::nullopt;
  return to_time(row.integer(column));
}

// A scan's statement: what it selects, whether its range has an end, and its order.
std::string_view scan_sql(bool values, bool bounded, Order order) {
  static constexpr std::string_view kSql[] = {
      "SELECT k, coalesce(n, length(v)) FROM data WHERE t = ?1 AND k >= ?2 ORDER BY k",
      "SELECT k, coalesce(n, length(v)) FROM data WHERE t = ?1 AND k >= ?2 ORDER BY k DESC",
      "SELECT k, coalesce(n, length(v)) FROM data WHERE t = ?1 AND k >= ?2 AND k < ?3 ORDER BY k",
      "SELECT k, coalesce(n, length(v)) FROM data WHERE t = ?1 AND k >= ?2 AND k < ?3 ORDER BY k "
      "DESC",
      "SELECT k, n, v FROM data WHERE t = ?1 AND k >= ?2 ORDER BY k",
      "SELECT k, n, v FROM data WHERE t = ?1 AND k >= ?2 ORDER BY k DESC",
      "SELECT k, n, v FROM data WHERE t = ?1 AND k >= ?2 AND k < ?3 ORDER BY k",
      "SELECT k, n, v FROM data WHERE t = ?1 AND k >= ?2 AND k < ?3 ORDER BY k DESC",
  };
  return kSql[(values ? 4U : 0U) + (bounded ? 2U : 0U) + (order == Order::kDescending ? 1U : 0U)];
}

Result<Statement> start_scan(Connection& connection, std::string_view sql, const Range& range) {
  SW_TRY(Statement scan, connection.prepare(sql));
  scan.bind(1, std::int64_t{range.table}).bind(2, range.from);
  if (!range.to.empty()) scan.bind(3, range.to);
  return scan;
}

Error damaged(const Connection& connection, std::string_view how) {
  return Error{ErrorCode::kCorrupt,
               fmt::format("{} is damaged: {}", connection.path().native(), how), 0};
}

// The value without its padding; `length_column` comes right before the value's.
Result<BytesView> value_of(const Connection& connection, const Statement& row, int length_column) {
  const BytesView stored = row.bytes(length_column + 1);
  if (row.is_null(length_column)) return stored;
  const std::int64_t length = row.integer(length_column);
  if (length < 0 || static_cast<std::uint64_t>(length) > stored.size()) {
    return damaged(connection, "a value is shorter than its length says");
  }
  return stored.first(static_cast<std::size_t>(length));
}

}  // namespace

const std::vector<std::string>& object_file_formats() {
  // In `data`, v is a value with padding, and n its length without (NULL: there is none). Rowids on
  // purpose: an update then leaves the key's index alone and overwrites the value in place.
  static const std::vector<std::string> steps = {
      "CREATE TABLE self (one INTEGER PRIMARY KEY CHECK (one = 1), class BLOB NOT NULL, id BLOB "
      "NOT NULL,"
      "  schema INTEGER NOT NULL, alarm INTEGER);"
      "CREATE TABLE data (t INTEGER NOT NULL, k BLOB NOT NULL, n INTEGER, v BLOB NOT NULL, PRIMARY "
      "KEY (t, k));",
  };
  return steps;
}

Result<void> migrate(Connection& connection, const std::vector<std::string>& steps) {
  SW_TRY(const std::int64_t format, connection.number("PRAGMA user_version"));
  const auto known = static_cast<std::int64_t>(steps.size());
  if (format < 0 || format > known) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} has format {}, but this program supports at most {}: it was "
                             "written by a newer version",
                             connection.path().native(), format, known),
                 0};
  }
  for (std::int64_t step = format; step < known; ++step) {
    SW_CHECK_OK(connection.execute(steps[static_cast<std::size_t>(step)].c_str()));
  }
  if (format != known)
    SW_CHECK_OK(connection.execute(fmt::format("PRAGMA user_version = {}", known).c_str()));
  return {};
}

Result<void> prepare_new_database(Connection& connection) {
  // One page, written without a journal, since there is nothing yet to go back to, and synced once.
  // It has to be on disk before the first commit: SQLite discards the log of a database file that
  // is empty.
  SW_CHECK_OK(
      connection.execute(fmt::format("PRAGMA page_size = {}; PRAGMA auto_vacuum = NONE;"
                                     "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY;"
                                     "PRAGMA application_id = {}; PRAGMA journal_mode = WAL",
                                     kPageBytes, kApplicationId)
                             .c_str()));
  return connection.sync();
}

Result<void> configure(Connection& connection) {
  // FULL: a commit is on disk when it returns. Deleted content is overwritten where its page is
  // written anyway.
  return connection.execute(
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = FAST; PRAGMA "
      "cache_size = "
      "-512;"
      "PRAGMA wal_autocheckpoint = 2000; PRAGMA journal_size_limit = 2097152; PRAGMA "
      "cell_size_check = ON;"
      "PRAGMA trusted_schema = OFF");
}

Result<void> check_ours(Connection& connection) {
  SW_TRY(const std::int64_t id, connection.number("PRAGMA application_id"));
  if (id != kApplicationId) return damaged(connection, "it is not one of this program's databases");
  return {};
}

Result<std::unique_ptr<ObjectFile>> ObjectFile::open(const std::filesystem::path& path,
                                                     const std::string& vfs) {
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) {
    return Error{ErrorCode::kCorrupt, fmt::format("{} is missing", path.native()), 0};
  }
  SW_TRY(auto connection, Connection::open(path, Connection::Mode::kExisting, vfs));
  SW_CHECK_OK(configure(*connection));
  SW_CHECK_OK(check_ours(*connection));
  SW_TRY(const std::int64_t format, connection->number("PRAGMA user_version"));
  if (format != 0 && format != static_cast<std::int64_t>(object_file_formats().size())) {
    RollbackGuard guard(*connection);
    SW_CHECK_OK(connection->execute("BEGIN IMMEDIATE"));
    SW_CHECK_OK(migrate(*connection, object_file_formats()));
    SW_CHECK_OK(connection->execute("COMMIT"));
  }
  return std::unique_ptr<ObjectFile>(new ObjectFile(std::move(connection)));
}

Result<std::unique_ptr<ObjectFile>> ObjectFile::create(const std::filesystem::path& path,
                                                       const std::string& vfs) {
  // What lies under this name is from a creation that a power loss made the catalog forget.
  SW_CHECK_OK(delete_database(path, vfs));
  SW_TRY(auto connection, Connection::open(path, Connection::Mode::kCreate, vfs));
  SW_CHECK_OK(prepare_new_database(*connection));
  SW_CHECK_OK(configure(*connection));
  return std::unique_ptr<ObjectFile>(new ObjectFile(std::move(connection)));
}

Result<std::unique_ptr<ObjectFile>> ObjectFile::in_memory() {
  SW_TRY(auto connection, Connection::open_in_memory());
  return std::unique_ptr<ObjectFile>(new ObjectFile(std::move(connection)));
}

Result<void> ObjectFile::initialize(const ObjectName& name) {
  SW_CHECK_OK(migrate(*connection_, object_file_formats()));
  SW_TRY(Statement insert,
         connection_->prepare("INSERT INTO self (one, class, id, schema) VALUES (1, ?1, ?2, 0)"));
  return insert.bind(1, name.class_name).bind(2, name.id).run();
}

Result<std::optional<ObjectFile::Self>> ObjectFile::self() {
  SW_TRY(const std::int64_t format, connection_->number("PRAGMA user_version"));
  if (format == 0) return std::optional<Self>();
  SW_TRY(Statement select, connection_->prepare("SELECT class, id, schema, alarm FROM self"));
  SW_TRY(const bool row, select.step());
  if (!row) return damaged(*connection_, "the row about the object is missing");
  return std::optional<Self>(
      Self{{select.text(0), select.text(1)}, select.integer(2), optional_time(select, 3)});
}

Result<std::int64_t> ObjectFile::schema_version() {
  return connection_->number("SELECT schema FROM self");
}

Result<void> ObjectFile::set_schema_version(std::int64_t version) {
  SW_TRY(Statement update, connection_->prepare("UPDATE self SET schema = ?1"));
  return update.bind(1, version).run();
}

Result<void> ObjectFile::compact_if_worthwhile() {
  SW_TRY(const std::int64_t pages, connection_->number("PRAGMA page_count"));
  SW_TRY(const std::int64_t free, connection_->number("PRAGMA freelist_count"));
  if (free * static_cast<std::int64_t>(kPageBytes) < kCompactBytesMin || free * 2 < pages)
    return {};
  return connection_->execute("VACUUM");
}

Result<void> SqliteTransaction::noted(Result<void> result) {
  if (!result.ok() && !failure_) failure_ = result.error();
  return result;
}

Result<void> SqliteTransaction::noted_write(Result<void> result) {
  wrote_ = true;
  return noted(std::move(result));
}

Result<std::optional<Bytes>> SqliteTransaction::get(TableId table, std::string_view key) {
  const auto read = [&]() -> Result<std::optional<Bytes>> {
    SW_TRY(Statement select, connection_.prepare("SELECT n, v FROM data WHERE t = ?1 AND k = ?2"));
    select.bind(1, std::int64_t{table}).bind(2, key);
    SW_TRY(const bool row, select.step());
    if (!row) return std::optional<Bytes>();
    SW_TRY(const BytesView value, value_of(connection_, select, 0));
    return std::optional<Bytes>(Bytes(value.begin(), value.end()));
  };
  auto value = read();
  if (!value.ok() && !failure_) failure_ = value.error();
  return value;
}

Result<void> SqliteTransaction::scan(const Range& range, Order order, const RowCallback& each) {
  SW_TRY(Statement rows, start_scan(connection_, scan_sql(true, !range.to.empty(), order), range));
  for (;;) {
    auto row = rows.step();
    if (!row.ok()) return noted(std::move(row).error());
    if (!*row) return {};
    auto value = value_of(connection_, rows, 1);
    if (!value.ok()) return noted(std::move(value).error());
    SW_TRY(const Scan next, each(as_text(rows.bytes(0)), *value));
    if (next == Scan::kStop) return {};
  }
}

Result<void> SqliteTransaction::scan_keys(const Range& range, Order order,
                                          const KeyCallback& each) {
  SW_TRY(Statement rows, start_scan(connection_, scan_sql(false, !range.to.empty(), order), range));
  for (;;) {
    auto row = rows.step();
    if (!row.ok()) return noted(std::move(row).error());
    if (!*row) return {};
    SW_TRY(const Scan next,
           each(as_text(rows.bytes(0)), static_cast<std::size_t>(rows.integer(1))));
    if (next == Scan::kStop) return {};
  }
}

Result<std::optional<Time>> SqliteTransaction::alarm() {
  SW_TRY(auto self, file_.self());
  return self ? self->alarm : std::nullopt;
}

Result<void> SqliteTransaction::put(TableId table, std::string_view key, BytesView value) {
  if (key.size() > kKeyBytesMax || value.size() > kValueBytesMax) {
    return noted(Error{ErrorCode::kLimitExceeded,
                       fmt::format("a row of {} + {} bytes: a key has at most {} and a value {}",
                                   key.size(), value.size(), kKeyBytesMax, kValueBytesMax),
                       0});
  }
  return noted_write(put_row(table, key, value));
}

Result<void> SqliteTransaction::put_row(TableId table, std::string_view key, BytesView value) {
  std::size_t stored = 0;
  if (value.size() > kUnpaddedBytesMax && value.size() <= kPaddedBytesMax) {
    SW_TRY(Statement select,
           connection_.prepare("SELECT length(v) FROM data WHERE t = ?1 AND k = ?2"));
    select.bind(1, std::int64_t{table}).bind(2, key);
    SW_TRY(const bool row, select.step());
    if (row) stored = static_cast<std::size_t>(select.integer(0));
  }
  const std::size_t size = padded_size(key.size(), value.size(), stored);
  Bytes padded;
  SW_TRY(Statement upsert,
         connection_.prepare("INSERT INTO data (t, k, n, v) VALUES (?1, ?2, ?3, ?4)"
                             " ON CONFLICT (t, k) DO UPDATE SET n = excluded.n, v = excluded.v"));
  upsert.bind(1, std::int64_t{table}).bind(2, key);
  if (size == value.size()) {
    upsert.bind_null(3).bind(4, value);
  } else {
    padded.reserve(size);
    padded.assign(value.begin(), value.end());
    padded.resize(size);
    upsert.bind(3, static_cast<std::int64_t>(value.size())).bind(4, BytesView(padded));
  }
  return upsert.run();
}

Result<void> SqliteTransaction::erase(TableId table, std::string_view key) {
  const auto erase_row = [&]() -> Result<void> {
    SW_TRY(Statement statement, connection_.prepare("DELETE FROM data WHERE t = ?1 AND k = ?2"));
    return statement.bind(1, std::int64_t{table}).bind(2, key).run();
  };
  return noted_write(erase_row());
}

Result<void> SqliteTransaction::erase_range(const Range& range) {
  const auto erase_rows = [&]() -> Result<void> {
    SW_TRY(Statement statement,
           start_scan(connection_,
                      range.to.empty() ? "DELETE FROM data WHERE t = ?1 AND k >= ?2"
                                       : "DELETE FROM data WHERE t = ?1 AND k >= ?2 AND k < ?3",
                      range));
    return statement.run();
  };
  return noted_write(erase_rows());
}

Result<void> SqliteTransaction::set_alarm(std::optional<Time> time) {
  const auto update_alarm = [&]() -> Result<void> {
    SW_TRY(Statement update, connection_.prepare("UPDATE self SET alarm = ?1"));
    if (time) {
      update.bind(1, to_number(*time));
    } else {
      update.bind_null(1);
    }
    return update.run();
  };
  new_alarm_ = time;
  return noted_write(update_alarm());
}

}  // namespace sw::storage
