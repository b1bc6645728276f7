// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/layer_database.h"

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
// stays in the leaf: rewritten with another length it then still takes the same pages, and SQLite
// overwrites them in place instead of moving pages to and from its free list.
constexpr std::size_t kUnpaddedBytesMax = kPageBytes / 4;
// beyond it, padding no longer matters
constexpr std::size_t kPaddedBytesMax = std::size_t{64} << 10U;
// of a long row, in a leaf of pages this size
constexpr std::size_t kLeafBytes = 104;
constexpr std::size_t kOverflowBytes = kPageBytes - 4;
constexpr std::size_t kRowHeaderBytes = 12;  // lengths and types of the columns, about

constexpr std::int64_t kCompactBytesMin = 4 << 20;

// Of a row that is erased in this layer, in the place of its length.
constexpr std::int64_t kErased = -1;

constexpr std::int64_t kFormat = 2;

// What one scan gives at most.
constexpr std::int64_t kScannedRowsMax = 128;
constexpr std::size_t kScannedBytesMax = std::size_t{1} << 20U;

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

std::string scan_sql(const Range& range, const ScanOptions& options) {
  return fmt::format("SELECT k, n, {} FROM data WHERE t = ?1 AND k >= ?2{} ORDER BY k{} LIMIT {}",
                     options.values ? "v" : "length(v)", range.to.empty() ? "" : " AND k < ?3",
                     options.order == Order::kDescending ? " DESC" : "", kScannedRowsMax);
}

Error damaged(const Connection& connection, std::string_view how) {
  return Error{ErrorCode::kCorrupt,
               fmt::format("{} is damaged: {}", connection.path().native(), how), 0};
}

/// Columns 1 and 2 are the length without padding, and the value or its padded length.
Result<StoredRow> row_of(const Connection& connection, const Statement& row, std::string key,
                         bool value) {
  StoredRow found{.key = std::move(key)};
  const std::size_t stored = value ? row.bytes(2).size() : static_cast<std::size_t>(row.integer(2));
  const std::int64_t length = row.is_null(1) ? static_cast<std::int64_t>(stored) : row.integer(1);
  found.erased = length == kErased;
  if (found.erased) return found;
  if (length < 0 || static_cast<std::uint64_t>(length) > stored) {
    return damaged(connection, "a value is shorter than its length says");
  }
  found.bytes = static_cast<std::size_t>(length);
  if (value) {
    const BytesView bytes = row.bytes(2).first(found.bytes);
    found.value = std::make_shared<const Bytes>(bytes.begin(), bytes.end());
  }
  return found;
}

std::int64_t to_number(Time time) { return time.time_since_epoch().count(); }

}  // namespace

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

Result<void> make_current(Connection& connection) {
  SW_TRY(const std::int64_t format, connection.number("PRAGMA user_version"));
  if (format == kFormat) return {};
  // In `data`, v is a value with padding, and n its length without (NULL: there is none), or -1 for
  // a row that is erased here and may be there in a layer below. Rowids on purpose: an update then
  // leaves the key's index alone and overwrites the value in place.
  SW_CHECK_OK(connection.execute(
      format == 0
          ? "CREATE TABLE self (one INTEGER PRIMARY KEY CHECK (one = 1), class BLOB NOT NULL, id "
            "BLOB"
            " NOT NULL, schema INTEGER NOT NULL, alarm INTEGER, entry BLOB);"
            "CREATE TABLE data (t INTEGER NOT NULL, k BLOB NOT NULL, n INTEGER, v BLOB NOT NULL,"
            " PRIMARY KEY (t, k));"
          : "ALTER TABLE self ADD COLUMN entry BLOB"));
  return connection.execute(fmt::format("PRAGMA user_version = {}", kFormat).c_str());
}

Result<void> configure(Connection& connection) {
  // EXCLUSIVE: the folder has one owner and the pool one connection for each file, so no statement
  // has to take locks. FULL: a commit is on disk when it returns. Deleted content is overwritten
  // where its page is written anyway.
  return connection.execute(
      "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
      "PRAGMA secure_delete = FAST; PRAGMA cache_size = -512; PRAGMA wal_autocheckpoint = 2000;"
      "PRAGMA journal_size_limit = 2097152; PRAGMA cell_size_check = ON; PRAGMA trusted_schema = "
      "OFF");
}

Result<void> check_ours(Connection& connection) {
  SW_TRY(const std::int64_t id, connection.number("PRAGMA application_id"));
  if (id != kApplicationId) return damaged(connection, "it is not one of this program's databases");
  SW_TRY(const std::int64_t format, connection.number("PRAGMA user_version"));
  if (format >= 0 && format <= kFormat) return {};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} has format {}, but this program supports at most {}: it was written "
                           "by a newer version",
                           connection.path().native(), format, kFormat),
               0};
}

Result<std::unique_ptr<LayerDatabase>> LayerDatabase::open(const std::filesystem::path& path,
                                                           const std::string& vfs) {
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) {
    return Error{ErrorCode::kCorrupt, fmt::format("{} is missing", path.native()), 0};
  }
  SW_TRY(auto connection, Connection::open(path, Connection::Mode::kExisting, vfs));
  SW_CHECK_OK(configure(*connection));
  SW_CHECK_OK(check_ours(*connection));
  return std::unique_ptr<LayerDatabase>(new LayerDatabase(std::move(connection)));
}

Result<std::unique_ptr<LayerDatabase>> LayerDatabase::create(const std::filesystem::path& path,
                                                             const std::string& vfs) {
  // What lies under this name is from a creation that was never finished.
  SW_CHECK_OK(delete_database(path, vfs));
  SW_TRY(auto connection, Connection::open(path, Connection::Mode::kCreate, vfs));
  SW_CHECK_OK(prepare_new_database(*connection));
  SW_CHECK_OK(configure(*connection));
  return std::unique_ptr<LayerDatabase>(new LayerDatabase(std::move(connection)));
}

Result<std::optional<StoredRow>> LayerDatabase::find(TableId table, std::string_view key) {
  SW_TRY(Statement select,
         connection_->prepare("SELECT 0, n, v FROM data WHERE t = ?1 AND k = ?2"));
  select.bind(1, std::int64_t{table}).bind(2, key);
  SW_TRY(const bool row, select.step());
  if (!row) return std::optional<StoredRow>();
  SW_TRY(StoredRow found, row_of(*connection_, select, std::string(key), true));
  return std::optional(std::move(found));
}

Result<std::vector<StoredRow>> LayerDatabase::scan(const Range& range, const ScanOptions& options) {
  std::vector<StoredRow> rows;
  std::size_t bytes = 0;
  SW_TRY(Statement select, connection_->prepare_once(scan_sql(range, options)));
  select.bind(1, std::int64_t{range.table}).bind(2, range.from);
  if (!range.to.empty()) select.bind(3, range.to);
  while (bytes < kScannedBytesMax) {
    SW_TRY(const bool row, select.step());
    if (!row) break;
    SW_TRY(StoredRow found, row_of(*connection_, select, select.text(0), options.values));
    // Whoever scans goes on from the last one, and would never come to an end.
    const bool in_order =
        rows.empty() || (options.order == Order::kAscending ? rows.back().key < found.key
                                                            : rows.back().key > found.key);
    if (!in_order || found.key < range.from || (!range.to.empty() && found.key >= range.to))
      return damaged(*connection_, "its rows are not in order");
    bytes += found.value ? found.bytes : 0;
    rows.push_back(std::move(found));
  }
  return rows;
}

Result<std::optional<TableId>> LayerDatabase::next_table(TableId from) {
  SW_TRY(Statement select,
         connection_->prepare("SELECT t FROM data WHERE t >= ?1 ORDER BY t LIMIT 1"));
  select.bind(1, std::int64_t{from});
  SW_TRY(const bool row, select.step());
  if (!row) return std::optional<TableId>();
  const std::int64_t found = select.integer(0);
  if (found < from || found > UINT16_MAX)
    return damaged(*connection_, "a row is of a table that cannot be");
  return std::optional(static_cast<TableId>(found));
}

Result<void> LayerDatabase::write(const LayerWrite& write, const char* before) {
  RollbackGuard guard(*connection_);
  SW_CHECK_OK(connection_->execute("BEGIN IMMEDIATE"));
  if (before) SW_CHECK_OK(connection_->execute(before));
  SW_CHECK_OK(make_current(*connection_));
  for (const auto& [name, value] : write.rows) {
    SW_CHECK_OK(value ? put(name, value) : erase(name, write.lowest));
  }
  if (write.owner_change == OwnerChange::kSet) SW_CHECK_OK(set_owner(write.owner));
  if (write.owner_change == OwnerChange::kClear)
    SW_CHECK_OK(connection_->execute("DELETE FROM self"));
  return connection_->execute("COMMIT");
}

Result<void> LayerDatabase::put(const RowName& name, const Value& value) {
  std::size_t stored = 0;
  if (value->size() > kUnpaddedBytesMax && value->size() <= kPaddedBytesMax) {
    SW_TRY(Statement select,
           connection_->prepare("SELECT length(v) FROM data WHERE t = ?1 AND k = ?2"));
    select.bind(1, std::int64_t{name.first}).bind(2, name.second);
    SW_TRY(const bool row, select.step());
    if (row) stored = static_cast<std::size_t>(select.integer(0));
  }
  const std::size_t size = padded_size(name.second.size(), value->size(), stored);
  Bytes padded;
  SW_TRY(Statement upsert,
         connection_->prepare("INSERT INTO data (t, k, n, v) VALUES (?1, ?2, ?3, ?4)"
                              " ON CONFLICT (t, k) DO UPDATE SET n = excluded.n, v = excluded.v"));
  upsert.bind(1, std::int64_t{name.first}).bind(2, name.second);
  if (size == value->size()) {
    upsert.bind_null(3).bind(4, BytesView(*value));
    return upsert.run();
  }
  padded = *value;
  padded.resize(size);
  upsert.bind(3, static_cast<std::int64_t>(value->size())).bind(4, BytesView(padded));
  return upsert.run();
}

Result<void> LayerDatabase::erase(const RowName& name, bool lowest) {
  if (lowest) {
    SW_TRY(Statement erase, connection_->prepare("DELETE FROM data WHERE t = ?1 AND k = ?2"));
    return erase.bind(1, std::int64_t{name.first}).bind(2, name.second).run();
  }
  SW_TRY(Statement mark,
         connection_->prepare("INSERT INTO data (t, k, n, v) VALUES (?1, ?2, -1, x'')"
                              " ON CONFLICT (t, k) DO UPDATE SET n = -1, v = x''"));
  return mark.bind(1, std::int64_t{name.first}).bind(2, name.second).run();
}

Result<void> LayerDatabase::set_owner(const StoredObject& owner) {
  SW_TRY(Statement insert,
         connection_->prepare("INSERT OR REPLACE INTO self (one, class, id, schema, alarm, entry)"
                              " VALUES (1, ?1, ?2, ?3, ?4, ?5)"));
  const Bytes entry = encode_object(owner.entry);
  insert.bind(1, owner.name.class_name).bind(2, owner.name.id);
  insert.bind(3, static_cast<std::int64_t>(owner.entry.schema)).bind(5, BytesView(entry));
  if (owner.entry.alarm) insert.bind(4, to_number(*owner.entry.alarm));
  else insert.bind_null(4);
  return insert.run();
}

Result<std::optional<StoredObject>> LayerDatabase::owner() {
  SW_TRY(const std::int64_t format, connection_->number("PRAGMA user_version"));
  if (format == 0) return std::optional<StoredObject>();
  SW_TRY(Statement select, connection_->prepare_once(
                               format == 1 ? "SELECT class, id, schema, alarm, NULL FROM self"
                                           : "SELECT class, id, schema, alarm, entry FROM self"));
  SW_TRY(const bool row, select.step());
  if (!row) {
    if (format > 1) return std::optional<StoredObject>();
    return damaged(*connection_, "the row about the object is missing");
  }
  StoredObject object{.name = {select.text(0), select.text(1)}, .entry = {}};
  if (!select.is_null(4)) {
    SW_TRY(object.entry, decode_object(select.bytes(4)));
    return std::optional(std::move(object));
  }
  object.entry.schema = static_cast<std::uint64_t>(std::max<std::int64_t>(select.integer(2), 0));
  if (!select.is_null(3)) object.entry.alarm = Time(std::chrono::milliseconds(select.integer(3)));
  return std::optional(std::move(object));
}

Result<void> LayerDatabase::compact_if_worthwhile() {
  SW_TRY(const std::int64_t pages, connection_->number("PRAGMA page_count"));
  SW_TRY(const std::int64_t free, connection_->number("PRAGMA freelist_count"));
  if (free * static_cast<std::int64_t>(kPageBytes) < kCompactBytesMin || free * 2 < pages)
    return {};
  return connection_->execute("VACUUM");
}

}  // namespace sw::storage
