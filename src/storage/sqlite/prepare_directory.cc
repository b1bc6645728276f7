// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// The directory's database when it is not as it should be: lost, damaged, or of an earlier version.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "storage/sqlite/data_folder_storage.h"

namespace sw::storage {
namespace fs = std::filesystem;

namespace {

/// Objects as they are found, and the directory's rows for them.
class Found {
 public:
  explicit Found(DataFolderParts& parts) : parts_(parts) {}

  /// An object whose topmost layer has this number. Of two lives of one object the later one counts.
  void add(LayerNumber number, StoredObject object) {
    if (object.entry.layers.empty()) object.entry.layers = {number};
    const auto known = objects_.find(object.name);
    if (known != objects_.end() && known->second.layers.front() > number) return;
    objects_.insert_or_assign(std::move(object.name), std::move(object.entry));
  }
  void number_is_taken(LayerNumber number) { next_ = std::max(next_, number + 1); }

  Result<Rows> rows(std::uint64_t epoch) {
    LayeredTransaction directory({}, {});
    std::map<LayerNumber, LayerEntry> layers;
    for (const auto& [name, entry] : objects_) {
      for (const LayerNumber number : entry.layers) {
        LayerEntry& layer = layers.emplace(number, LayerEntry{.owners = 0}).first->second;
        ++layer.owners;
        layer.stored = parts_.files.exists(number);
        layer.lowest = number == entry.layers.back();
        number_is_taken(number);
      }
      SW_CHECK_OK(put_object(directory, name, entry, std::nullopt));
    }
    for (const auto& [number, entry] : layers) SW_CHECK_OK(put_layer(directory, number, entry));
    SW_CHECK_OK(write_counter(directory, Counter::kNextLayer, next_));
    if (epoch != 0) SW_CHECK_OK(write_counter(directory, Counter::kEpoch, epoch));
    return directory.take_rows();
  }

 private:
  DataFolderParts& parts_;
  std::map<ObjectName, ObjectEntry> objects_;
  LayerNumber next_ = kDirectoryLayer + 1;
};

/// What the database of a layer says about an object; nothing if it is no object's topmost one.
Result<std::optional<StoredObject>> owner_of(DataFolderParts& parts, LayerNumber number) {
  std::optional<StoredObject> owner;
  SW_CHECK_OK(parts.files.use(number, [&](LayerDatabase& database) -> Result<void> {
    SW_TRY(owner, database.owner());
    return {};
  }));
  return owner;
}

// --- made anew

Result<void> rebuild(DataFolderParts& parts, const std::vector<std::int64_t>& numbers) {
  Found found(parts);
  for (const std::int64_t file : numbers) {
    const auto number = static_cast<LayerNumber>(file);
    found.number_is_taken(number);
    auto owner = owner_of(parts, number);
    if (!owner.ok()) parts.notice(owner.error().message);
    else if (*owner) found.add(number, **std::move(owner));
  }
  SW_TRY(const Rows rows, found.rows(0));
  return parts.files.make(kDirectoryLayer, [&](LayerDatabase& database) {
    return database.write({.rows = rows, .lowest = true});
  });
}

/// Its making was not finished, so all that it would hold is in the journal.
Result<bool> is_unfinished(DataFolderParts& parts) {
  bool unfinished = false;
  SW_CHECK_OK(parts.files.use(kDirectoryLayer, [&](LayerDatabase& database) -> Result<void> {
    SW_TRY(const std::int64_t format, database.connection().number("PRAGMA user_version"));
    unfinished = format == 0;
    return {};
  }));
  return unfinished;
}

Result<void> set_aside(DataFolderParts& parts, const Error& damage) {
  parts.notice(damage.message + "; it is made anew from the objects");
  const fs::path path = parts.files.path(kDirectoryLayer);
  std::error_code error;
  fs::rename(path, path.native() + ".damaged", error);
  if (error) return errno_error(error.value(), "setting the damaged directory aside");
  return parts.files.remove(kDirectoryLayer);
}

// --- of an earlier version

/// Catalogs of format 1 had a table of objects, some of which may not have been finished, and one of
/// files to be deleted.
class Conversion {
 public:
  Conversion(DataFolderParts& parts, LayerDatabase& catalog) : parts_(parts), catalog_(catalog) {}

  Result<void> run() {
    Connection& connection = catalog_.connection();
    SW_CHECK_OK(read_garbage(connection));
    Found found(parts_);
    SW_TRY(Statement objects,
           connection.prepare_once("SELECT file, state, class, id FROM object ORDER BY file"));
    for (;;) {
      SW_TRY(const bool row, objects.step());
      if (!row) break;
      const auto number = static_cast<LayerNumber>(objects.integer(0));
      found.number_is_taken(number);
      SW_CHECK_OK(add(found, number, {objects.text(2), objects.text(3)}, objects.integer(1) == 2));
    }
    SW_TRY(const std::int64_t last,
           connection.number("SELECT coalesce(max(seq), 0) FROM sqlite_sequence"));
    found.number_is_taken(static_cast<LayerNumber>(std::max<std::int64_t>(last, 0)));
    SW_TRY(const std::int64_t epoch, connection.number("SELECT epoch FROM folder"));
    SW_TRY(rows_, found.rows(static_cast<std::uint64_t>(std::max<std::int64_t>(epoch, 1))));
    return {};
  }

  Result<void> finish() {
    for (const LayerNumber number : garbage_) SW_CHECK_OK(parts_.files.remove(number));
    return catalog_.write({.rows = rows_, .lowest = true},
                          "DROP TABLE object; DROP TABLE garbage; DROP TABLE folder;"
                          "PRAGMA user_version = 0");
  }

 private:
  Result<void> read_garbage(Connection& connection) {
    SW_TRY(Statement files, connection.prepare_once("SELECT file FROM garbage"));
    for (;;) {
      SW_TRY(const bool row, files.step());
      if (!row) return {};
      garbage_.push_back(static_cast<LayerNumber>(files.integer(0)));
    }
  }

  Result<void> add(Found& found, LayerNumber number, ObjectName name, bool finished) {
    auto owner = parts_.files.exists(number) ? owner_of(parts_, number)
                                             : Result<std::optional<StoredObject>>(std::nullopt);
    const bool damaged = !owner.ok() && owner.error().code == ErrorCode::kCorrupt;
    if (!owner.ok() && !damaged) return std::move(owner).error();
    if (owner.ok() && *owner) {
      found.add(number, **std::move(owner));
    } else if (finished) {
      // It is listed all the same: whoever uses it is told.
      found.add(number, {std::move(name), {}});
    } else {
      garbage_.push_back(number);
    }
    return {};
  }

  DataFolderParts& parts_;
  LayerDatabase& catalog_;
  std::vector<LayerNumber> garbage_;
  Rows rows_;
};

Result<void> convert(DataFolderParts& parts) {
  return parts.files.use(kDirectoryLayer, [&](LayerDatabase& catalog) -> Result<void> {
    SW_TRY(const std::int64_t format, catalog.connection().number("PRAGMA user_version"));
    if (format != 1) return {};
    parts.notice("the data folder is converted to this version's format");
    Conversion conversion(parts, catalog);
    SW_CHECK_OK(conversion.run());
    return conversion.finish();
  });
}

/// Damage is looked for at once, while the directory can still be made anew.
Result<void> check(DataFolderParts& parts) {
  SW_TRY(const bool unfinished, is_unfinished(parts));
  if (unfinished) return parts.files.remove(kDirectoryLayer);
  SW_CHECK_OK(convert(parts));
  return parts.files.use(kDirectoryLayer, [&](LayerDatabase& database) -> Result<void> {
    SW_TRY([[maybe_unused]] const auto rows, database.scan({kLayersTable, {}, {}}, {}));
    return {};
  });
}

}  // namespace

Result<void> prepare_directory(DataFolderParts& parts) {
  SW_TRY(const auto numbers, parts.folder.object_files());
  std::error_code error;
  // An empty one knows nothing of the objects there are.
  const bool exists = fs::file_size(parts.files.path(kDirectoryLayer), error) > 0 && !error;
  if (exists) {
    const auto checked = check(parts);
    if (checked.ok()) return {};
    // (kInternal: what SQLite says of a file that it takes for one of its own and that makes no
    // sense.)
    const ErrorCode code = checked.error().code;
    if (code != ErrorCode::kCorrupt && code != ErrorCode::kInternal) return checked;
    SW_CHECK_OK(set_aside(parts, checked.error()));
  } else {
    SW_CHECK_OK(parts.files.remove(kDirectoryLayer));
    if (numbers.empty()) return {};
  }
  return rebuild(parts, numbers);
}

}  // namespace sw::storage
