// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The list of a data folder's objects: which file each lies in, and when to look at it for an
// alarm.
//
// What an object is, its own file says. The catalog can be made anew from the files, and never
// needs to change in one transaction with them:
// - A file's number is never used twice, so whoever still has a deleted object's file open harms no
//   other object.
// - An object is `confirmed` once its first commit is known to be done. Before, its file decides.
// - An alarm in here is never later than the object's own: it goes to disk before an earlier alarm
//   is committed, and is raised after a later one was. So looking at the objects whose time has
//   come misses none.
// - A file to be deleted is listed as garbage in the transaction that drops its object.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_safety.h"
#include "storage/sqlite/connection.h"
#include "storage/storage.h"

namespace sw::storage {

using FileNumber = std::int64_t;

/// Whether a change must be on disk before the call returns. What is not may be lost by a power
/// loss, never by a crash of this process.
enum class Durable : std::uint8_t { kNo, kYes };

/// Threads: any.
class Catalog {
 public:
  struct Entry {
    FileNumber file = 0;
    ObjectName name;
    bool confirmed = false;
    std::optional<Time> alarm;
  };

  static Result<std::unique_ptr<Catalog>> open(const std::filesystem::path& path,
                                               const std::string& vfs);

  /// Higher with each call, across restarts.
  Result<std::int64_t> next_epoch();

  Result<std::optional<Entry>> find(const ObjectName& name);
  Result<std::vector<Entry>> list(std::string_view class_name, std::string_view after_id,
                                  std::size_t count_max);
  Result<std::vector<Entry>> unconfirmed();
  Result<std::vector<Entry>> all();
  /// By alarm, those after (`time`, `file`).
  Result<std::vector<Entry>> alarms_after(Time time, FileNumber file, Time until,
                                          std::size_t count_max);

  /// A new, unconfirmed entry. Not durable.
  Result<FileNumber> reserve(const ObjectName& name);
  /// Takes a reservation back without touching the file.
  Result<void> release(FileNumber file);
  /// Numbers given from now on are higher.
  Result<void> skip_to(FileNumber number);
  /// Adds an entry for a file that exists.
  Result<void> adopt(const Entry& entry);
  Result<void> confirm(FileNumber file);
  /// Makes the entry durable with this alarm.
  Result<void> settle(FileNumber file, std::optional<Time> alarm);
  /// Makes sure, on disk, that the object is looked at at `time` or earlier.
  Result<void> lower_alarm(FileNumber file, Time time);
  Result<void> set_alarm(FileNumber file, std::optional<Time> alarm);

  /// The object is gone; its file becomes garbage.
  Result<void> drop(FileNumber file);
  Result<std::vector<FileNumber>> garbage();
  Result<void> collected(FileNumber file);

 private:
  explicit Catalog(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
  Result<void> make_durable(Durable durable) SW_REQUIRES(mutex_);
  static Result<std::vector<Entry>> entries(Statement& select);

  Mutex mutex_;
  const std::unique_ptr<Connection> connection_ SW_PT_GUARDED_BY(mutex_);
  Durable durable_ SW_GUARDED_BY(mutex_) = Durable::kYes;  // what the connection is set to
};

}  // namespace sw::storage
