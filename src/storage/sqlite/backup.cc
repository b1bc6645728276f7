// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/backup.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/unique_fd.h"
#include "storage/sqlite/catalog.h"
#include "storage/sqlite/data_folder.h"
#include "storage/sqlite/object_file.h"

namespace sw::storage {
namespace fs = std::filesystem;

namespace {

// A copy of one state of the database. It is made from its rows, so it holds nothing that was
// deleted.
Result<void> copy_database(const fs::path& from, const fs::path& to) {
  SW_TRY(auto source, Connection::open(from, Connection::Mode::kExisting, ""));
  {
    SW_TRY(Statement copy, source->prepare("VACUUM INTO CAST(?1 AS TEXT)"));
    SW_CHECK_OK(copy.bind(1, std::string_view(to.native())).run());
  }
  SW_TRY(auto target, Connection::open(to, Connection::Mode::kExisting, ""));
  return target->sync();
}

class Backup {
 public:
  Backup(DataFolder from, DataFolder to) : from_(std::move(from)), to_(std::move(to)) {}

  Result<BackupReport> run() {
    SW_CHECK_OK(copy_database(from_.catalog(), to_.catalog()));
    SW_TRY(catalog_, Catalog::open(to_.catalog(), ""));
    SW_TRY(const auto garbage, catalog_->garbage());
    for (const FileNumber file : garbage) SW_CHECK_OK(catalog_->collected(file));
    SW_TRY(const auto confirmed, catalog_->all());
    for (const Catalog::Entry& entry : confirmed) SW_CHECK_OK(copy(entry));
    SW_TRY(const auto unconfirmed, catalog_->unconfirmed());
    for (const Catalog::Entry& entry : unconfirmed) SW_CHECK_OK(copy(entry));
    return std::move(report_);
  }

 private:
  Result<void> copy(const Catalog::Entry& entry) {
    SW_CHECK_OK(to_.make_room_for(entry.file));
    auto alarm = copy_object(entry);
    if (alarm.ok()) {
      ++report_.objects;
      SW_CHECK_OK(catalog_->confirm(entry.file));
      // The object may have moved its alarm since the catalog was copied.
      return catalog_->set_alarm(entry.file, *alarm);
    }
    // A full disk here is an end to the copying; a damaged object there is not.
    if (alarm.error().code != ErrorCode::kCorrupt && alarm.error().code != ErrorCode::kNotFound) {
      return std::move(alarm).error();
    }
    SW_TRY(const bool exists, still_exists(entry));
    if (exists) report_.damaged.push_back(to_string(entry.name) + ": " + alarm.error().message);
    SW_CHECK_OK(delete_database(to_.object(entry.file), ""));
    SW_CHECK_OK(catalog_->drop(entry.file));
    return catalog_->collected(entry.file);
  }

  Result<std::optional<Time>> copy_object(const Catalog::Entry& entry) const {
    const fs::path target = to_.object(entry.file);
    std::error_code error;
    if (!fs::exists(from_.object(entry.file), error)) {
      return Error{ErrorCode::kNotFound,
                   fmt::format("{} is missing", from_.object(entry.file).native()), 0};
    }
    SW_CHECK_OK(copy_database(from_.object(entry.file), target));
    SW_TRY(auto file, ObjectFile::open(target, ""));
    SW_TRY(auto self, file->self());
    if (!self) return Error{ErrorCode::kNotFound, "its creation was not finished", 0};
    if (self->name != entry.name) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("its file is that of {}", to_string(self->name)), 0};
    }
    return self->alarm;
  }

  // Whether the folder that is copied still has the object: else it was deleted meanwhile, or never
  // finished.
  Result<bool> still_exists(const Catalog::Entry& entry) const {
    SW_TRY(auto catalog, Connection::open(from_.catalog(), Connection::Mode::kExisting, ""));
    SW_TRY(Statement select,
           catalog->prepare("SELECT 1 FROM object WHERE file = ?1 AND state = 2"));
    select.bind(1, entry.file);
    return select.step();
  }

  const DataFolder from_;
  const DataFolder to_;
  std::unique_ptr<Catalog> catalog_;  // of the copy
  BackupReport report_;
};

}  // namespace

Result<BackupReport> back_up(const fs::path& folder, const fs::path& destination) {
  std::error_code error;
  const DataFolder from = DataFolder::look_at(folder);
  if (!fs::exists(from.catalog(), error)) {
    return Error{ErrorCode::kNotFound, fmt::format("{} is not a data folder", folder.native()), 0};
  }
  if (fs::exists(destination, error)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} already exists", destination.native()), 0};
  }
  const fs::path parent = destination.has_parent_path() ? destination.parent_path() : fs::path(".");
  fs::create_directories(parent, error);
  if (error) return errno_error(error.value(), fmt::format("cannot create {}", parent.native()));
  // Under another name until it is whole.
  SW_TRY(const TemporaryDirectory unfinished, TemporaryDirectory::create(parent, ".backup-"));
  auto report = Backup(DataFolder::look_at(folder), DataFolder::look_at(unfinished.path())).run();
  if (!report.ok()) return std::move(report).error().while_doing("backing up " + folder.native());
  if (::rename(unfinished.path().c_str(), destination.c_str()) != 0) {
    return errno_error(errno, fmt::format("cannot rename the backup to {}", destination.native()));
  }
  const UniqueFd synced(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!synced || ::fsync(synced.get()) != 0)
    return errno_error(errno, fmt::format("cannot sync {}", parent.native()));
  return report;
}

}  // namespace sw::storage
