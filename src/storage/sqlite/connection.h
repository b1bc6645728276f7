// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// SQLite's C API as Results. A connection is used by one thread at a time.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace sw::storage {

class Connection;

/// One use of a prepared statement, which goes back to its connection afterwards. Bound bytes are
/// not copied: they have to outlive the Statement.
class Statement {
 public:
  Statement(Statement&& other) noexcept
      : connection_(other.connection_),
        sql_(other.sql_),
        statement_(std::exchange(other.statement_, nullptr)) {}
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  Statement& bind(int index, std::int64_t value);
  Statement& bind(int index, BytesView bytes);
  Statement& bind(int index, std::string_view bytes) { return bind(index, as_bytes(bytes)); }
  Statement& bind_null(int index);

  /// True: there is a row. False: the statement has ended.
  Result<bool> step();
  /// Steps to the end, for statements whose rows, if any, do not matter.
  Result<void> run();

  std::int64_t integer(int column) const;
  bool is_null(int column) const;
  /// Valid until the next step.
  BytesView bytes(int column) const;
  std::string text(int column) const { return std::string(as_text(bytes(column))); }

 private:
  friend class Connection;
  Statement(Connection& connection, std::string_view sql, sqlite3_stmt* statement)
      : connection_(&connection), sql_(sql), statement_(statement) {}

  Connection* connection_;
  std::string_view sql_;
  sqlite3_stmt* statement_;
  int bind_failure_ = 0;  // the first failed bind, told by step()
};

class Connection {
 public:
  enum class Mode : std::uint8_t { kExisting, kCreate };

  /// `vfs` names the SQLite file layer to use; empty: the default one.
  static Result<std::unique_ptr<Connection>> open(const std::filesystem::path& path, Mode mode,
                                                  const std::string& vfs);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Runs statements that give no rows.
  Result<void> execute(const char* sql);
  /// `sql` is a literal: the prepared statement is kept under it.
  Result<Statement> prepare(std::string_view sql);
  /// For text that is made up: the statement is not kept.
  Result<Statement> prepare_once(const std::string& sql);
  /// The one value that a query gives, as a number.
  Result<std::int64_t> number(std::string_view sql);

  /// Waits until the database file (not its log) is on disk as it is.
  Result<void> sync();

  bool in_transaction() const;
  void roll_back();

  const std::filesystem::path& path() const { return path_; }
  /// The Error for a result code: kCorrupt for a damaged file, kUnavailable for what the disk or
  /// another process is to blame for. The message names the file.
  Error error(int code) const;

 private:
  friend class Statement;
  Connection(sqlite3* handle, std::filesystem::path path)
      : handle_(handle), path_(std::move(path)) {}

  sqlite3* handle_;
  std::filesystem::path path_;
  std::vector<std::pair<std::string_view, sqlite3_stmt*>> idle_;  // prepared, not in use
};

/// Ends a transaction that nobody ended: an early return, or an exception, rolls back.
class RollbackGuard {
 public:
  explicit RollbackGuard(Connection& connection) : connection_(connection) {}
  ~RollbackGuard() {
    if (connection_.in_transaction()) connection_.roll_back();
  }
  RollbackGuard(const RollbackGuard&) = delete;
  RollbackGuard& operator=(const RollbackGuard&) = delete;

 private:
  Connection& connection_;
};

/// Deletes a database with what SQLite keeps beside it. Missing files are fine.
Result<void> delete_database(const std::filesystem::path& path, const std::string& vfs);

}  // namespace sw::storage
