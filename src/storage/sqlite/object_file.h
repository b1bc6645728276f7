// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The database of one object: its rows, and one row about the object itself. docs/data-folder.md
// has the format.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/sqlite/connection.h"
#include "storage/storage.h"

namespace sw::storage {

/// How the database itself came to look as it does, as SQL: step n turns format n into n + 1.
const std::vector<std::string>& object_file_formats();

/// Runs the steps that `connection`'s database has not seen, in the transaction that is open. Its
/// format is SQLite's user_version. kInvalidArgument if it has seen more steps than there are.
Result<void> migrate(Connection& connection, const std::vector<std::string>& steps);

/// Makes a new, empty database one of ours: before any table exists.
Result<void> prepare_new_database(Connection& connection);
/// Settings of a connection, which SQLite does not keep in the file.
Result<void> configure(Connection& connection);
/// kCorrupt if the database is not one of ours.
Result<void> check_ours(Connection& connection);

class ObjectFile {
 public:
  /// A database that exists. kCorrupt if it is missing, too: objects do not vanish by themselves.
  static Result<std::unique_ptr<ObjectFile>> open(const std::filesystem::path& path,
                                                  const std::string& vfs);
  /// A new one, still without tables; `initialize` is to follow in the first transaction.
  static Result<std::unique_ptr<ObjectFile>> create(const std::filesystem::path& path,
                                                    const std::string& vfs);
  /// What an object looks like that does not exist.
  static Result<std::unique_ptr<ObjectFile>> in_memory();

  Result<void> initialize(const ObjectName& name);

  /// What the row about the object says. nullopt: creation never got to its commit.
  struct Self {
    ObjectName name;
    std::int64_t schema = 0;
    std::optional<Time> alarm;
  };
  Result<std::optional<Self>> self();

  Result<std::int64_t> schema_version();
  Result<void> set_schema_version(std::int64_t version);

  /// Gives the space of deleted rows back to the file system where it is a good part of the file.
  Result<void> compact_if_worthwhile();

  Connection& connection() { return *connection_; }

 private:
  explicit ObjectFile(std::unique_ptr<Connection> connection)
      : connection_(std::move(connection)) {}

  std::unique_ptr<Connection> connection_;
};

/// Rows of one object within the open transaction of its file.
class SqliteTransaction final : public Transaction {
 public:
  explicit SqliteTransaction(ObjectFile& file) : file_(file), connection_(file.connection()) {}

  Result<std::optional<Bytes>> get(TableId table, std::string_view key) override;
  Result<void> scan(const Range& range, Order order, const RowCallback& each) override;
  Result<void> scan_keys(const Range& range, Order order, const KeyCallback& each) override;
  Result<std::optional<Time>> alarm() override;
  Result<void> put(TableId table, std::string_view key, BytesView value) override;
  Result<void> erase(TableId table, std::string_view key) override;
  Result<void> erase_range(const Range& range) override;
  Result<void> set_alarm(std::optional<Time> time) override;

  /// The first error that makes a commit wrong: it counts even if the body ignored it.
  const std::optional<Error>& failure() const { return failure_; }
  bool wrote() const { return wrote_; }
  /// The alarm as set in this transaction; nullopt: not touched.
  const std::optional<std::optional<Time>>& new_alarm() const { return new_alarm_; }

 private:
  Result<void> noted(Result<void> result);
  Result<void> noted_write(Result<void> result);
  Result<void> put_row(TableId table, std::string_view key, BytesView value);

  ObjectFile& file_;
  Connection& connection_;
  std::optional<Error> failure_;
  bool wrote_ = false;
  std::optional<std::optional<Time>> new_alarm_;
};

}  // namespace sw::storage
