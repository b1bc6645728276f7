// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/connection.h"

#include <fmt/format.h>
#include <sqlite3.h>

namespace sw::storage {

namespace {

// Long enough for another process to recover or back up the database that we want to open.
constexpr int kBusyTimeoutMs = 20'000;

ErrorCode code_of(int code) {
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return ErrorCode::kCorrupt;
    case SQLITE_TOOBIG: return ErrorCode::kLimitExceeded;
    case SQLITE_PERM:
    case SQLITE_AUTH: return ErrorCode::kPermission;
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_READONLY:
    case SQLITE_PROTOCOL:
    case SQLITE_NOMEM: return ErrorCode::kUnavailable;
    default: return ErrorCode::kInternal;
  }
}

Error error_of(sqlite3* handle, int code, const std::filesystem::path& path) {
  const ErrorCode kind = code_of(code);
  const char* what = handle != nullptr ? sqlite3_errmsg(handle) : sqlite3_errstr(code);
  const int system_error = handle != nullptr ? sqlite3_system_errno(handle) : 0;
  std::string message = fmt::format("{}{}: {}", path.native(),
                                    kind == ErrorCode::kCorrupt ? " is damaged" : "", what);
  if (kind == ErrorCode::kUnavailable && system_error != 0) {
    message = errno_error(system_error, message).message;
  }
  return Error{kind, std::move(message), 0};
}

}  // namespace

Statement::~Statement() {
  if (statement_ == nullptr) return;
  if (sql_.empty()) {
    sqlite3_finalize(statement_);
    return;
  }
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
  connection_->idle_.emplace_back(sql_, statement_);
}

Statement& Statement::bind(int index, std::int64_t value) {
  const int code = sqlite3_bind_int64(statement_, index, value);
  if (code != SQLITE_OK && bind_failure_ == SQLITE_OK) bind_failure_ = code;
  return *this;
}

Statement& Statement::bind(int index, BytesView bytes) {
  // A null pointer would bind NULL instead of no bytes.
  const void* data = bytes.empty() ? "" : static_cast<const void*>(bytes.data());
  const int code = sqlite3_bind_blob64(statement_, index, data, bytes.size(), SQLITE_STATIC);
  if (code != SQLITE_OK && bind_failure_ == SQLITE_OK) bind_failure_ = code;
  return *this;
}

Statement& Statement::bind_null(int index) {
  const int code = sqlite3_bind_null(statement_, index);
  if (code != SQLITE_OK && bind_failure_ == SQLITE_OK) bind_failure_ = code;
  return *this;
}

Result<bool> Statement::step() {
  const int code = bind_failure_ != SQLITE_OK ? bind_failure_ : sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return connection_->error(code);
}

Result<void> Statement::run() {
  for (;;) {
    SW_TRY(const bool row, step());
    if (!row) return {};
  }
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

BytesView Statement::bytes(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  return {static_cast<const std::byte*>(data),
          static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

Result<std::unique_ptr<Connection>> Connection::open(const std::filesystem::path& path, Mode mode,
                                                     const std::string& vfs) {
  // NOMUTEX: a connection is never used by two threads at once, and its own lock would be taken for
  // each call.
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  if (mode == Mode::kCreate) flags |= SQLITE_OPEN_CREATE;
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &handle, flags, vfs.empty() ? nullptr : vfs.c_str());
  if (code != SQLITE_OK) {
    Error error = error_of(handle, code, path);
    sqlite3_close(handle);
    return error;
  }
  sqlite3_busy_timeout(handle, kBusyTimeoutMs);
  return std::unique_ptr<Connection>(new Connection(handle, path));
}

Connection::~Connection() {
  for (const auto& [sql, statement] : idle_) sqlite3_finalize(statement);
  sqlite3_close(handle_);
}

Result<void> Connection::execute(const char* sql) {
  const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return error(code);
  return {};
}

Result<Statement> Connection::prepare(std::string_view sql) {
  for (auto idle = idle_.begin(); idle != idle_.end(); ++idle) {
    if (idle->first != sql) continue;
    Statement statement(*this, idle->first, idle->second);
    idle_.erase(idle);
    return statement;
  }
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(handle_, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return error(code);
  return Statement(*this, sql, statement);
}

Result<Statement> Connection::prepare_once(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  const int code =
      sqlite3_prepare_v3(handle_, sql.data(), static_cast<int>(sql.size()), 0, &statement, nullptr);
  if (code != SQLITE_OK) return error(code);
  return Statement(*this, {}, statement);
}

Result<std::int64_t> Connection::number(std::string_view sql) {
  SW_TRY(Statement statement, prepare(sql));
  SW_TRY(const bool row, statement.step());
  if (!row)
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} is damaged: a row is missing", path_.native()), 0};
  return statement.integer(0);
}

Result<void> Connection::sync() {
  sqlite3_file* file = nullptr;
  int code = sqlite3_file_control(handle_, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if (code == SQLITE_OK) code = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
  if (code != SQLITE_OK) return error(code);
  return {};
}

bool Connection::in_transaction() const { return sqlite3_get_autocommit(handle_) == 0; }

void Connection::roll_back() { sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr); }

Error Connection::error(int code) const { return error_of(handle_, code, path_); }

Result<void> delete_database(const std::filesystem::path& path, const std::string& vfs) {
  sqlite3_vfs* files = sqlite3_vfs_find(vfs.empty() ? nullptr : vfs.c_str());
  if (files == nullptr)
    return Error{ErrorCode::kInvalidArgument, "no such SQLite file layer: " + vfs, 0};
  // The database first: left without its log it would look like an older state of the object.
  for (const char* suffix : {"", "-shm", "-wal", "-journal"}) {
    const std::string name = path.native() + suffix;
    const int code = files->xDelete(files, name.c_str(), 1);
    if (code == SQLITE_OK || code == SQLITE_IOERR_DELETE_NOENT) continue;
    return Error{code_of(code), fmt::format("cannot delete {}: {}", name, sqlite3_errstr(code)), 0};
  }
  return {};
}

}  // namespace sw::storage
