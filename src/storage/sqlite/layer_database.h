// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The database that a layer rests in: its rows, and one row about the object whose topmost layer it
// is. docs/data-folder.md has the format.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/directory.h"
#include "storage/layer.h"
#include "storage/sqlite/connection.h"

namespace sw::storage {

/// An object, as the database of its topmost layer says: the directory can be made anew from it.
struct StoredObject {
  ObjectName name;
  ObjectEntry entry;  ///< `layers` may be empty in databases of earlier versions: only this one
};

/// What the row about the object is to be.
enum class OwnerChange : std::uint8_t { kNone, kSet, kClear };

struct LayerWrite {
  const Rows& rows;     // NOLINT: lives as long as the call
  bool lowest = false;  ///< nothing is below: erased rows need not be remembered
  OwnerChange owner_change = OwnerChange::kNone;
  StoredObject owner = {};  ///< with kSet
};

/// Threads: one at a time.
class LayerDatabase {
 public:
  /// One that exists. kCorrupt if it is missing, too: they do not vanish by themselves.
  static Result<std::unique_ptr<LayerDatabase>> open(const std::filesystem::path& path,
                                                     const std::string& vfs);
  /// A new one, in the place of whatever is there.
  static Result<std::unique_ptr<LayerDatabase>> create(const std::filesystem::path& path,
                                                       const std::string& vfs);

  Result<std::optional<StoredRow>> find(TableId table, std::string_view key);
  Result<std::vector<StoredRow>> scan(const Range& range, const ScanOptions& options);
  /// The first table from `from` on that has rows.
  Result<std::optional<TableId>> next_table(TableId from);
  /// In one transaction, which is on disk when this returns. `before` is done first.
  Result<void> write(const LayerWrite& write, const char* before = nullptr);
  Result<std::optional<StoredObject>> owner();

  /// Gives the space of deleted rows back to the file system where it is a good part of the file.
  Result<void> compact_if_worthwhile();

  Connection& connection() { return *connection_; }

 private:
  explicit LayerDatabase(std::unique_ptr<Connection> connection)
      : connection_(std::move(connection)) {}
  Result<void> put(const RowName& name, const Value& value);
  Result<void> erase(const RowName& name, bool lowest);
  Result<void> set_owner(const StoredObject& owner);

  std::unique_ptr<Connection> connection_;
};

/// Makes a new, empty database one of ours: before any table exists.
Result<void> prepare_new_database(Connection& connection);
/// The tables, and the format's number. Within a transaction.
Result<void> make_current(Connection& connection);
/// Settings of a connection, which SQLite does not keep in the file.
Result<void> configure(Connection& connection);
/// kCorrupt if the database is not one of ours; kInvalidArgument if a newer program wrote it.
Result<void> check_ours(Connection& connection);

}  // namespace sw::storage
