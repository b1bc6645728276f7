// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <unordered_map>

#include "base/thread_safety.h"
#include "storage/sqlite/catalog.h"
#include "storage/sqlite/object_file.h"

namespace sw::storage {

/// Keeps open databases that nobody uses at the moment, up to a number; those used longest ago are
/// closed. So the open databases are at most that many, and one more for each thread that is at
/// work.
/// Threads: any.
class IdleFiles {
 public:
  explicit IdleFiles(std::size_t open_max) : open_max_(open_max) {}

  /// The open database of this number, or null. It is the caller's now.
  std::unique_ptr<ObjectFile> take(FileNumber number);
  void put_back(FileNumber number, std::unique_ptr<ObjectFile> file);

 private:
  struct Idle {
    FileNumber number;
    std::unique_ptr<ObjectFile> file;
  };

  const std::size_t open_max_;
  Mutex mutex_;
  std::list<Idle> idle_ SW_GUARDED_BY(mutex_);  // used longest ago first
  std::unordered_map<FileNumber, std::list<Idle>::iterator> by_number_ SW_GUARDED_BY(mutex_);
};

}  // namespace sw::storage
