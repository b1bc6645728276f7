// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Copying a data folder that is in use.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/unique_fd.h"
#include "storage/sqlite/data_folder_storage.h"

namespace sw::storage {
namespace fs = std::filesystem;

namespace {

/// A copy of the databases, and of the rows that they lacked at one moment.
class Backup {
 public:
  Backup(DataFolderParts& from, const fs::path& to)
      : from_(from), folder_(DataFolder::look_at(to)), files_(folder_, "", 1) {}

  void remember(const std::vector<LayerPtr>& layers) {
    for (const LayerPtr& layer : layers) rows_[layer->number()] = layer->settled();
  }

  Result<BackupReport> run() {
    SW_CHECK_OK(copy(kDirectoryLayer));
    if (!files_.exists(kDirectoryLayer)) return std::move(report_);
    std::vector<std::pair<ObjectName, ObjectEntry>> objects;
    SW_CHECK_OK(with_directory([&](LayeredTransaction& directory) {
      return scan_objects(directory, [&](const ObjectName& name, const ObjectEntry& entry) {
        objects.emplace_back(name, entry);
        return Result<Scan>(Scan::kContinue);
      });
    }));
    for (const auto& [name, entry] : objects) SW_CHECK_OK(copy_object(name, entry));
    SW_CHECK_OK(correct_directory());
    return std::move(report_);
  }

 private:
  /// Each layer once.
  Result<void> copy_object(const ObjectName& name, const ObjectEntry& entry) {
    for (const LayerNumber number : entry.layers) {
      if (!outcomes_.contains(number)) outcomes_.emplace(number, copy(number));
      const Result<void>& outcome = outcomes_.at(number);
      if (outcome.ok()) continue;
      // A full disk here is an end to the copying; a damaged object there is not.
      if (outcome.error().code != ErrorCode::kCorrupt) return outcome;
      lost_.emplace_back(name, entry);
      SW_TRY(const bool deleted, is_deleted(name, entry));
      if (!deleted) report_.damaged.push_back(to_string(name) + ": " + outcome.error().message);
      return {};
    }
    ++report_.objects;
    return {};
  }

  /// Whether the object was deleted while others were copied.
  Result<bool> is_deleted(const ObjectName& name, const ObjectEntry& entry) {
    LayeredTransaction directory({from_.layers.get(kDirectoryLayer, Stored::kNo)}, {});
    SW_TRY(const auto now, find_object(directory, name));
    return !now || now->layers.back() != entry.layers.back();
  }

  Result<void> copy(LayerNumber number) {
    std::optional<LayerEntry> entry;
    if (number != kDirectoryLayer) {
      SW_CHECK_OK(with_directory([&](LayeredTransaction& directory) -> Result<void> {
        SW_TRY(entry, find_layer(directory, number));
        return {};
      }));
    }
    if (entry ? entry->stored : from_.files.exists(number)) {
      const fs::path target = files_.path(number);
      if (number != kDirectoryLayer)
        SW_CHECK_OK(folder_.make_room_for(static_cast<std::int64_t>(number)));
      // Made from its rows, so it holds nothing that was deleted.
      SW_CHECK_OK(from_.files.use(number, [&](LayerDatabase& database) -> Result<void> {
        SW_TRY(Statement copied, database.connection().prepare("VACUUM INTO CAST(?1 AS TEXT)"));
        return copied.bind(1, std::string_view(target.native())).run();
      }));
      SW_CHECK_OK(
          files_.use(number, [](LayerDatabase& database) { return database.connection().sync(); }));
    }
    const auto rows = rows_.find(number);
    if (rows == rows_.end() || rows->second.empty()) return {};
    if (entry && !entry->stored) made_.push_back(number);
    const FilePool::Use write_rows = [&](LayerDatabase& database) {
      return database.write({.rows = rows->second, .lowest = !entry || entry->lowest});
    };
    return files_.exists(number) ? files_.use(number, write_rows) : files_.make(number, write_rows);
  }

  Result<void> with_directory(const std::function<Result<void>(LayeredTransaction&)>& body) {
    FileLayers layers(files_);
    LayeredTransaction directory({layers.get(kDirectoryLayer, Stored::kYes)}, {});
    return body(directory);
  }

  /// In the copy, layers that were in memory have databases, and objects that could not be copied are
  /// not there.
  Result<void> correct_directory() {
    Rows rows;
    SW_CHECK_OK(with_directory([&](LayeredTransaction& directory) -> Result<void> {
      for (const LayerNumber number : made_) {
        SW_TRY(auto entry, find_layer(directory, number));
        if (!entry) continue;
        entry->stored = true;
        SW_CHECK_OK(put_layer(directory, number, *entry));
      }
      for (const auto& [name, entry] : lost_) SW_CHECK_OK(erase_object(directory, name, entry));
      rows = directory.take_rows();
      return {};
    }));
    return files_.use(kDirectoryLayer, [&](LayerDatabase& database) {
      return database.write({.rows = rows, .lowest = true});
    });
  }

  DataFolderParts& from_;
  const DataFolder folder_;
  FilePool files_;
  std::map<LayerNumber, Rows> rows_;
  std::map<LayerNumber, Result<void>> outcomes_;
  std::vector<LayerNumber> made_;
  std::vector<std::pair<ObjectName, ObjectEntry>> lost_;
  BackupReport report_;
};

Result<void> put_in_place(const fs::path& unfinished, const fs::path& destination) {
  if (::rename(unfinished.c_str(), destination.c_str()) != 0) {
    return errno_error(errno, fmt::format("cannot rename the backup to {}", destination.native()));
  }
  const fs::path parent = unfinished.parent_path();
  const UniqueFd synced(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!synced || ::fsync(synced.get()) != 0)
    return errno_error(errno, fmt::format("cannot sync {}", parent.native()));
  return {};
}

}  // namespace

Result<BackupReport> DataFolderStorage::back_up(const fs::path& destination) {
  std::error_code error;
  if (fs::exists(destination, error)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} already exists", destination.native()), 0};
  }
  const fs::path parent = destination.has_parent_path() ? destination.parent_path() : fs::path(".");
  fs::create_directories(parent, error);
  if (error) return errno_error(error.value(), fmt::format("cannot create {}", parent.native()));
  // Under another name until it is whole.
  SW_TRY(const TemporaryDirectory unfinished, TemporaryDirectory::create(parent, ".backup-"));
  const MutexLock lock(flush_mutex_);  // the databases stay as they are
  Result<BackupReport> report = BackupReport{};
  {
    Backup backup(*parts_, unfinished.path());
    SW_CHECK_OK(parts_->journal->at_rest([&] { backup.remember(parts_->layers.kept()); }));
    report = backup.run();
  }
  if (!report.ok()) {
    return std::move(report).error().while_doing("backing up " + parts_->folder.path().native());
  }
  SW_CHECK_OK(put_in_place(unfinished.path(), destination));
  return report;
}

}  // namespace sw::storage
