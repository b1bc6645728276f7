// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/data_folder_storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sw::storage {

namespace {

/// After a flush that failed, as on a full disk.
constexpr std::chrono::seconds kRetryPause{1};

/// Merges leave that much of the disk to others.
constexpr std::uint64_t kSpareBytes = std::uint64_t{32} << 20U;

/// Epochs of different starts differ even if a start changes nothing: seconds since 2020.
std::uint64_t epoch_now() {
  constexpr std::int64_t kYear2020 = 1'577'836'800;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(seconds - kYear2020, 1));
}

}  // namespace

// --- opening

void JournalRecovery::add(const JournalContent& content) {
  for (const std::string& damage : content.damage) {
    parts_.notice(fmt::format("the journal is damaged: {}", damage));
  }
  for (const Frame& frame : content.frames) {
    for (const FramePart& part : frame.parts) {
      if (std::ranges::find(damaged_, part.layer) != damaged_.end()) continue;
      if (!part.rows) {
        damaged_.push_back(part.layer);
        continue;
      }
      Rows& rows = rows_[part.layer];
      for (const auto& [name, value] : *part.rows) rows.insert_or_assign(name, value);
    }
  }
}

Result<std::vector<LayerNumber>> JournalRecovery::finish() {
  const LayerPtr directory = parts_.layers.get(
      kDirectoryLayer, parts_.files.exists(kDirectoryLayer) ? Stored::kYes : Stored::kNo);
  Rows& changed = rows_[kDirectoryLayer];
  for (const auto& [name, value] : changed) {
    const auto number = number_of_key(name.second);
    if (name.first == kLayersTable && !value && number) parts_.layers.discard(*number);
  }
  directory->recover(std::move(changed));
  parts_.layers.keep(directory);
  rows_.erase(kDirectoryLayer);
  LayeredTransaction reader({directory}, {});
  for (auto& [number, rows] : rows_) {
    SW_TRY(const auto entry, find_layer(reader, number));
    if (!entry) continue;
    const LayerPtr layer = parts_.layers.get(number, entry->stored ? Stored::kYes : Stored::kNo);
    layer->recover(std::move(rows));
    parts_.layers.keep(layer);
  }
  return std::move(damaged_);
}

Result<std::unique_ptr<DataFolderStorage>> DataFolderStorage::open(DataFolder folder,
                                                                   const SqliteOptions& options) {
  auto parts = std::make_unique<DataFolderParts>(std::move(folder), options);
  SW_CHECK_OK(prepare_directory(*parts));
  DataFolderParts& p = *parts;
  JournalRecovery recovery(p);
  SW_TRY(p.journal,
         Journal::open({.paths = {p.folder.journal(0), p.folder.journal(1)},
                        .vfs = options.vfs,
                        .waiting = options.waiting,
                        .on_settled = [&p](const LayerPtr& layer) { p.layers.keep(layer); },
                        .on_written = [&p](std::uint64_t bytes) { p.on_journal_written(bytes); }},
                       [&](const JournalContent& content) { recovery.add(content); }));
  SW_TRY(const std::vector<LayerNumber> damaged, recovery.finish());
  std::unique_ptr<DataFolderStorage> storage(new DataFolderStorage(std::move(parts)));
  SW_CHECK_OK(storage->start(epoch_now()));
  if (!damaged.empty()) {
    SW_CHECK_OK(storage->mark_damaged(damaged));
  }
  storage->journal_written(p.journal->other_file_needed() ? UINT64_MAX : p.journal->bytes());
  return storage;
}

DataFolderStorage::DataFolderStorage(std::unique_ptr<DataFolderParts> parts)
    : LayeredStorage(parts->layers, *parts->journal), parts_(std::move(parts)) {
  parts_->on_journal_written = [this](std::uint64_t bytes) { journal_written(bytes); };
}

Result<void> DataFolderStorage::mark_damaged(const std::vector<LayerNumber>& layers) {
  return change_directory(
      [&](Transaction& directory) -> Result<void> {
        for (const LayerNumber number : layers) {
          SW_TRY(auto entry, find_layer(directory, number));
          if (!entry) continue;
          entry->damaged = true;
          SW_CHECK_OK(put_layer(directory, number, *entry));
        }
        return {};
      },
      Durability::kCommit);
}

DataFolderStorage::~DataFolderStorage() {
  {
    const MutexLock lock(work_mutex_);
    stopping_ = true;
  }
  work_changed_.notify_all();
  if (worker_.joinable()) worker_.join();
  abandon_merge();
  if (const auto closed = close(); !closed.ok()) parts_->notice(closed.error().message);
}

Result<void> DataFolderStorage::close() {
  SW_CHECK_OK(parts_->journal->sync());
  SW_CHECK_OK(forget_relaxed());
  const bool leave = parts_->journal->bytes() <= parts_->options.journal_bytes_left;
  return leave ? Result<void>() : flush();
}

// --- moving rows from the journal to the databases

void DataFolderStorage::start_worker() {
  if (!worker_.joinable()) worker_ = std::thread([this] { work(); });
}

void DataFolderStorage::journal_written(std::uint64_t bytes) {
  if (bytes <= parts_->options.journal_bytes_max) return;
  {
    const MutexLock lock(work_mutex_);
    if (flush_wanted_ || stopping_ || std::chrono::steady_clock::now() < not_before_) return;
    flush_wanted_ = true;
    start_worker();
  }
  work_changed_.notify_all();
}

void DataFolderStorage::merge_soon() {
  {
    const MutexLock lock(work_mutex_);
    if (stopping_) return;
    merge_wanted_ = true;
    start_worker();
  }
  work_changed_.notify_all();
}

void DataFolderStorage::work() {
  MutexLock lock(work_mutex_);
  while (!stopping_) {
    if (flush_wanted_) {
      flush_now();
    } else if (!merge_wanted_) {
      work_changed_.wait(lock);
    } else if (std::chrono::steady_clock::now() < not_before_) {
      // What merges commit is in memory until it can be moved.
      work_changed_.wait_until(lock, not_before_);
    } else {
      merge_now();
    }
  }
}

void DataFolderStorage::flush_now() {
  Result<void> flushed;
  {
    const Unlocked unlocked(work_mutex_);
    flushed = flush();
    if (!flushed.ok()) {
      parts_->notice("cannot move the journal to the databases: " + flushed.error().message);
    }
  }
  flush_wanted_ = false;
  if (!flushed.ok()) not_before_ = std::chrono::steady_clock::now() + kRetryPause;
}

void DataFolderStorage::merge_now() {
  merge_wanted_ = false;
  Result<bool> more = false;
  {
    const Unlocked unlocked(work_mutex_);
    const MutexLock lock(flush_mutex_);
    more = merge_some();
    // A full disk is told to those whose commits it concerns.
    if (!more.ok() && more.error().code != ErrorCode::kUnavailable)
      parts_->notice("layers cannot be merged: " + more.error().message);
  }
  if (!more.ok() || *more) merge_wanted_ = true;
}

bool DataFolderStorage::has_room_for(std::uint64_t bytes) const {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(parts_->folder.path(), error);
  // In the journal and in a database.
  return !error && space.available / 2 > bytes + kSpareBytes;
}

Result<void> DataFolderStorage::flush() {
  const MutexLock lock(flush_mutex_);
  Journal& journal = *parts_->journal;
  SW_CHECK_OK(journal.sync());
  if (journal.other_file_needed()) {
    SW_CHECK_OK(write_layers());
    SW_CHECK_OK(journal.cut());
  }
  if (journal.bytes() == 0 || !journal.switch_files()) return {};
  SW_CHECK_OK(write_layers());
  return journal.cut();
}

/// One pass over all layers that have rows which their databases lack.
class DataFolderStorage::Flush {
 public:
  Flush(DataFolderParts& parts, LayeredTransaction& directory)
      : parts_(parts), directory_(directory) {}

  /// From the directory's rows: what the databases' rows about objects are to say, and which
  /// databases have to go.
  Result<void> look_at_directory(const Rows& changed) {
    for (const auto& [name, value] : changed) {
      if (name.first == kLayersTable && !value) {
        const auto number = number_of_key(name.second);
        if (number) SW_CHECK_OK(parts_.files.remove(*number));
      }
      if (name.first == kObjectsTable) SW_CHECK_OK(look_at_object(name.second, value));
    }
    return {};
  }

  void add_layers(const std::vector<LayerPtr>& layers) {
    for (const LayerPtr& layer : layers) {
      if (layer->number() == kDirectoryLayer) continue;
      Work& work = work_[layer->number()];
      work.layer = layer;
      work.rows = layer->settled();
    }
  }

  Result<void> write_all() {
    for (auto at = work_.begin(); at != work_.end();) {
      const auto& [number, work] = *at;
      SW_TRY(const auto entry, find_layer(directory_, number));
      // The directory's file may know of a topmost layer of which nothing was to be written so far.
      const bool nothing =
          entry && !entry->stored && work.rows.empty() && work.owner_change != OwnerChange::kSet;
      if (entry && !nothing) SW_CHECK_OK(write(number, work, *entry));
      at = nothing ? work_.erase(at) : std::next(at);
    }
    return {};
  }

  /// The directory says that all of it is stored.
  void finish() {
    for (auto& [number, work] : work_) {
      const LayerPtr layer = work.layer ? work.layer : parts_.layers.get(number, Stored::kYes);
      layer->file()->set_stored();
      layer->written(work.rows);
      parts_.layers.let_go(layer);
    }
  }

  const std::vector<LayerNumber>& made() const { return made_; }
  const std::vector<LayerNumber>& damaged() const { return damaged_; }

 private:
  struct Work {
    LayerPtr layer;  // null: only the row about the object changes
    Rows rows;
    OwnerChange owner_change = OwnerChange::kNone;
    StoredObject owner;
  };

  Result<void> look_at_object(const std::string& key, const Value& value) {
    std::optional<ObjectEntry> now;
    if (value) {
      SW_TRY(now, decode_object(*value));
      SW_TRY(ObjectName name, object_of_key(key));
      Work& work = work_[now->layers.front()];
      work.owner_change = OwnerChange::kSet;
      work.owner = {std::move(name), *now};
    }
    if (!parts_.files.exists(kDirectoryLayer)) return {};
    // Another layer is the topmost one now: that one must not be taken for the object.
    std::optional<LayerNumber> before;
    SW_CHECK_OK(parts_.files.use(kDirectoryLayer, [&](LayerDatabase& database) -> Result<void> {
      SW_TRY(const auto row, database.find(kObjectsTable, key));
      if (!row || !row->value) return {};
      SW_TRY(const ObjectEntry entry, decode_object(*row->value));
      before = entry.layers.front();
      return {};
    }));
    if (before && (!now || now->layers.front() != *before)) {
      Work& work = work_[*before];
      if (work.owner_change == OwnerChange::kNone) work.owner_change = OwnerChange::kClear;
    }
    return {};
  }

  Result<void> write(LayerNumber number, const Work& work, const LayerEntry& entry) {
    if (entry.damaged) return {};
    const FilePool::Use write_rows = [&](LayerDatabase& database) {
      return database.write({.rows = work.rows,
                             .lowest = entry.lowest,
                             .owner_change = work.owner_change,
                             .owner = work.owner});
    };
    auto written =
        entry.stored ? parts_.files.use(number, write_rows) : parts_.files.make(number, write_rows);
    if (written.ok()) {
      if (!entry.stored) made_.push_back(number);
      return {};
    }
    // One database must not hold up all the others.
    if (written.error().code == ErrorCode::kUnavailable) return written;
    parts_.notice(written.error().message);
    damaged_.push_back(number);
    return {};
  }

  DataFolderParts& parts_;
  LayeredTransaction& directory_;
  std::map<LayerNumber, Work> work_;
  std::vector<LayerNumber> made_;
  std::vector<LayerNumber> damaged_;
};

Result<void> DataFolderStorage::write_layers() {
  const LayerPtr directory = parts_->layers.get(kDirectoryLayer, Stored::kNo);
  LayeredTransaction reader({directory}, {});
  Flush flush(*parts_, reader);
  SW_CHECK_OK(flush.look_at_directory(directory->settled()));
  flush.add_layers(parts_->layers.kept());
  SW_CHECK_OK(flush.write_all());
  if (!flush.damaged().empty()) SW_CHECK_OK(mark_damaged(flush.damaged()));
  if (!flush.made().empty()) {
    SW_CHECK_OK(change_directory(
        [&](Transaction& rows) -> Result<void> {
          for (const LayerNumber number : flush.made()) {
            SW_TRY(auto entry, find_layer(rows, number));
            if (!entry) continue;
            entry->stored = true;
            SW_CHECK_OK(put_layer(rows, number, *entry));
          }
          return {};
        },
        Durability::kCommit));
  }
  flush.finish();
  const Rows rows = directory->settled();
  const FilePool::Use write_rows = [&](LayerDatabase& database) {
    return database.write({.rows = rows, .lowest = true});
  };
  SW_CHECK_OK(parts_->files.exists(kDirectoryLayer)
                  ? parts_->files.use(kDirectoryLayer, write_rows)
                  : parts_->files.make(kDirectoryLayer, write_rows));
  directory->file()->set_stored();
  directory->written(rows);
  parts_->layers.let_go(directory);
  return {};
}

// --- as others see it

bool is_data_folder(const std::filesystem::path& folder) {
  const DataFolder data = DataFolder::look_at(folder);
  std::error_code error;
  return std::filesystem::exists(data.catalog(), error) ||
         std::filesystem::exists(data.journal(0), error);
}

Result<std::unique_ptr<Storage>> open_sqlite_storage(const std::filesystem::path& folder,
                                                     SqliteOptions options) {
  SW_TRY(DataFolder owned, DataFolder::own(folder));
  SW_TRY(auto storage, DataFolderStorage::open(std::move(owned), options));
  return std::unique_ptr<Storage>(std::move(storage));
}

}  // namespace sw::storage
