// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/idle_files.h"

namespace sw::storage {

std::unique_ptr<ObjectFile> IdleFiles::take(FileNumber number) {
  const MutexLock lock(mutex_);
  const auto found = by_number_.find(number);
  if (found == by_number_.end()) return nullptr;
  std::unique_ptr<ObjectFile> file = std::move(found->second->file);
  idle_.erase(found->second);
  by_number_.erase(found);
  return file;
}

void IdleFiles::put_back(FileNumber number, std::unique_ptr<ObjectFile> file) {
  std::unique_ptr<ObjectFile> surplus;
  {
    const MutexLock lock(mutex_);
    idle_.push_back({number, std::move(file)});
    by_number_[number] = std::prev(idle_.end());
    if (idle_.size() > open_max_) {
      surplus = std::move(idle_.front().file);
      by_number_.erase(idle_.front().number);
      idle_.pop_front();
    }
  }
  // Closed outside of the lock: it writes what the log holds into the database, and waits for the
  // disk. The object may be opened again meanwhile; SQLite keeps two connections to one file apart.
  if (surplus && !surplus->compact_if_worthwhile().ok()) {
    // Then the file stays as large as it is; whatever is wrong with it shows at its next use.
  }
}

}  // namespace sw::storage
