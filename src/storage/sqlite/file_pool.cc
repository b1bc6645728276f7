// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/file_pool.h"

#include <atomic>
#include <utility>

namespace sw::storage {

namespace {

bool is_trouble(const Result<void>& outcome) {
  return !outcome.ok() && (outcome.error().code == ErrorCode::kUnavailable ||
                           outcome.error().code == ErrorCode::kCorrupt ||
                           outcome.error().code == ErrorCode::kInternal);
}

}  // namespace

std::filesystem::path FilePool::path(LayerNumber number) const {
  return number == kDirectoryLayer ? folder_.catalog()
                                   : folder_.object(static_cast<std::int64_t>(number));
}

bool FilePool::exists(LayerNumber number) const {
  std::error_code error;
  return std::filesystem::exists(path(number), error);
}

std::uint64_t FilePool::bytes(LayerNumber number) const {
  std::uint64_t bytes = 0;
  for (const char* const suffix : {"", "-wal"}) {
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(path(number).native() + suffix, error);
    if (!error) bytes += size;
  }
  return bytes;
}

Result<void> FilePool::use(LayerNumber number, const Use& use) {
  return this->use(number, Opening::kExisting, use);
}

Result<void> FilePool::make(LayerNumber number, const Use& use) {
  return this->use(number, Opening::kNew, use);
}

Result<std::unique_ptr<LayerDatabase>> FilePool::open(LayerNumber number, Opening opening) const {
  if (opening == Opening::kExisting) return LayerDatabase::open(path(number), vfs_);
  if (number != kDirectoryLayer) {
    SW_CHECK_OK(folder_.make_room_for(static_cast<std::int64_t>(number)));
  }
  return LayerDatabase::create(path(number), vfs_);
}

Result<void> FilePool::use(LayerNumber number, Opening opening, const Use& use) {
  const SlotPtr slot = take(number);
  Result<void> outcome;
  {
    const MutexLock lock(slot->mutex);
    if (opening == Opening::kNew) slot->database.reset();
    if (!slot->database) {
      auto opened = open(number, opening);
      if (opened.ok()) slot->database = *std::move(opened);
      else outcome = std::move(opened).error();
    }
    if (slot->database) outcome = use(*slot->database);
    if (is_trouble(outcome)) slot->database.reset();
  }
  give_back(slot);
  return outcome;
}

FilePool::SlotPtr FilePool::take(LayerNumber number) {
  const MutexLock lock(mutex_);
  SlotPtr& slot = slots_[number];
  if (!slot) {
    slot = std::make_shared<Slot>();
    slot->at = order_.insert(order_.end(), number);
  }
  order_.splice(order_.end(), order_, slot->at);
  ++slot->users;
  return slot;
}

void FilePool::give_back(const SlotPtr& slot) {
  SlotPtr surplus;
  {
    const MutexLock lock(mutex_);
    --slot->users;
    for (auto at = order_.begin(); order_.size() > open_max_ && at != order_.end(); ++at) {
      const auto found = slots_.find(*at);
      if (found->second->users != 0) continue;
      surplus = std::move(found->second);
      slots_.erase(found);
      order_.erase(at);
      break;
    }
  }
  if (!surplus) return;
  // Closed outside of the lock: it writes what its log holds into the database, and waits for the
  // disk. If the layer is needed again meanwhile, SQLite makes the new connection wait.
  const MutexLock lock(surplus->mutex);
  if (surplus->database && !surplus->database->compact_if_worthwhile().ok()) {
    // Then the file stays as large as it is; whatever is wrong with it shows at its next use.
  }
  surplus->database.reset();
}

Result<void> FilePool::remove(LayerNumber number) {
  const SlotPtr slot = take(number);
  Result<void> removed;
  {
    const MutexLock lock(slot->mutex);
    slot->database.reset();
    removed = delete_database(path(number), vfs_);
  }
  give_back(slot);
  return removed;
}

// --- layers

namespace {

constexpr TableId kNoTable = UINT16_MAX;

class PooledFile final : public LayerFile {
 public:
  PooledFile(FilePool& pool, LayerNumber number, Stored stored)
      : pool_(pool), number_(number), stored_(stored == Stored::kYes) {}

  void set_stored() override { stored_ = true; }

  Result<void> check() override {
    return use([](LayerDatabase& database) -> Result<void> {
      SW_TRY([[maybe_unused]] const auto nothing, database.find(kNoTable, {}));
      return {};
    });
  }

  Result<std::optional<StoredRow>> find(TableId table, std::string_view key) override {
    std::optional<StoredRow> found;
    SW_CHECK_OK(use([&](LayerDatabase& database) -> Result<void> {
      SW_TRY(found, database.find(table, key));
      return {};
    }));
    return found;
  }

  Result<std::vector<StoredRow>> scan(const Range& range, const ScanOptions& options) override {
    std::vector<StoredRow> found;
    SW_CHECK_OK(use([&](LayerDatabase& database) -> Result<void> {
      SW_TRY(found, database.scan(range, options));
      return {};
    }));
    return found;
  }

  Result<std::optional<TableId>> next_table(TableId from) override {
    std::optional<TableId> found;
    SW_CHECK_OK(use([&](LayerDatabase& database) -> Result<void> {
      SW_TRY(found, database.next_table(from));
      return {};
    }));
    return found;
  }

  std::uint64_t bytes() const override { return stored_ ? pool_.bytes(number_) : 0; }

 private:
  Result<void> use(const FilePool::Use& use) {
    return stored_ ? pool_.use(number_, use) : Result<void>();
  }

  FilePool& pool_;
  const LayerNumber number_;
  std::atomic<bool> stored_;
};

}  // namespace

std::shared_ptr<LayerFile> FileLayers::make_file(LayerNumber number, Stored stored) {
  return std::make_shared<PooledFile>(pool_, number, stored);
}

void FileLayers::discard(LayerNumber number) {
  forget(number);
  // What cannot be deleted now is deleted when the directory's file is written.
  (void)pool_.remove(number);
}

}  // namespace sw::storage
