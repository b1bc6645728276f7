// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/layered_storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "storage/directory_change.h"
#include "storage/layer_merge.h"
#include "storage/layered_object.h"

namespace sw::storage {

// --- the directory

LayeredStorage::DirectoryChange::DirectoryChange(LayeredStorage& storage)
    : storage_(storage), lock_(storage.directory_mutex_), directory_({storage.directory_}, {}) {}

Result<LayerPtr> LayeredStorage::DirectoryChange::new_layer(bool lowest, std::uint64_t owners) {
  storage_.directory_mutex_.assert_held();
  const LayerNumber number = storage_.next_layer_++;
  numbered_ = true;
  SW_CHECK_OK(put_layer(directory_, number, {.owners = owners, .stored = false, .lowest = lowest}));
  return storage_.layers_.get(number, Stored::kNo);
}

Result<void> LayeredStorage::DirectoryChange::share(const std::vector<LayerNumber>& layers) {
  for (const LayerNumber number : layers) {
    SW_TRY(auto entry, find_layer(directory_, number));
    if (!entry) return Error{ErrorCode::kCorrupt, fmt::format("layer {} is missing", number)};
    ++entry->owners;
    SW_CHECK_OK(put_layer(directory_, number, *entry));
  }
  return {};
}

Result<void> LayeredStorage::DirectoryChange::release(const std::vector<LayerNumber>& layers) {
  for (const LayerNumber number : layers) {
    SW_TRY(auto entry, find_layer(directory_, number));
    if (entry && entry->owners > 1) {
      --entry->owners;
      SW_CHECK_OK(put_layer(directory_, number, *entry));
    } else {
      SW_CHECK_OK(erase_layer(directory_, number));
      unused_.push_back(number);
    }
  }
  return {};
}

Result<std::unique_ptr<PendingCommit>> LayeredStorage::DirectoryChange::add(
    std::vector<Record::Owned> objects, std::vector<CommitRecord::Part> parts,
    Durability durability, bool frees_space) {
  storage_.directory_mutex_.assert_held();
  const bool epoch = !storage_.epoch_written_;
  if (epoch) SW_CHECK_OK(write_counter(directory_, Counter::kEpoch, storage_.epoch_));
  if (numbered_) {
    SW_CHECK_OK(write_counter(directory_, Counter::kNextLayer, storage_.next_layer_));
  }
  parts.insert(parts.begin(),
               {storage_.directory_, std::make_shared<const Rows>(directory_.take_rows())});
  if (epoch) storage_.epoch_written_ = true;
  return storage_.log_.add(std::make_shared<Record>(storage_, std::move(objects), std::move(parts),
                                                    durability, frees_space));
}

// --- the storage

LayeredStorage::LayeredStorage(Layers& layers, CommitLog& log, Bodies bodies)
    : layers_(layers),
      log_(log),
      bodies_(bodies),
      directory_(layers.get(kDirectoryLayer, Stored::kNo)) {}

LayeredStorage::~LayeredStorage() = default;

Result<void> LayeredStorage::start(std::uint64_t epoch) {
  SW_CHECK_OK(read_directory([&](Reader& directory) -> Result<void> {
    SW_TRY(const std::uint64_t last, read_counter(directory, Counter::kEpoch));
    SW_TRY(const std::uint64_t next, read_counter(directory, Counter::kNextLayer));
    if (next >= kLayerNumberMax) {
      return Error{ErrorCode::kCorrupt,
                   "the directory of objects is damaged: there are no more numbers for layers"};
    }
    const MutexLock lock(directory_mutex_);
    epoch_ = std::max(last + 1, epoch);
    next_layer_ = std::max(next, kDirectoryLayer + 1);
    return {};
  }));
  // On a full disk it can wait.
  const auto dropped = drop_unfinished_merge();
  return !dropped.ok() && dropped.error().code != ErrorCode::kUnavailable ? dropped
                                                                          : Result<void>();
}

LayeredStorage::ObjectPtr LayeredStorage::object(const ObjectName& name) {
  const MutexLock lock(objects_mutex_);
  std::weak_ptr<Object>& known = objects_[name];
  if (auto object = known.lock()) return object;
  // The last one to let go removes the entry, unless somebody has put a new one there by then.
  ObjectPtr made(new Object(name), [this](Object* gone) {
    const std::unique_ptr<Object> deleter(gone);
    const MutexLock objects_lock(objects_mutex_);
    const auto found = objects_.find(gone->name);
    if (found != objects_.end() && found->second.expired()) objects_.erase(found);
  });
  known = made;
  return made;
}

Result<void> LayeredStorage::load(Object& object) {
  if (!object.stale.exchange(false)) return {};
  auto loaded = load_entry(object);
  for (const LayerPtr& layer : object.layers) {
    if (loaded.ok() && layer->file()) loaded = layer->file()->check();
  }
  if (!loaded.ok()) object.stale = true;
  return loaded;
}

Result<void> LayeredStorage::load_entry(Object& object) {
  object.entry.reset();
  object.layers.clear();
  // Whoever writes a layer's file says so in the directory before it lets go of the layer. So one that
  // is not stored, according to the directory, is still there as long as nobody changes that.
  const MutexLock lock(directory_mutex_);
  return read_directory([&](Reader& directory) -> Result<void> {
    SW_TRY(object.entry, find_object(directory, object.name));
    if (!object.entry) return {};
    for (const LayerNumber number : object.entry->layers) {
      SW_TRY(const auto layer, find_layer(directory, number));
      if (!layer) {
        return Error{ErrorCode::kCorrupt,
                     fmt::format("{}: layer {} is missing", to_string(object.name), number)};
      }
      if (layer->damaged) {
        return Error{
            ErrorCode::kCorrupt,
            fmt::format("{} is damaged: something that was committed to it cannot be read; "
                        "restore it from a backup, or delete it",
                        to_string(object.name))};
      }
      object.layers.push_back(layers_.get(number, layer->stored ? Stored::kYes : Stored::kNo));
    }
    return {};
  });
}

Result<void> LayeredStorage::read_directory(const ReadBody& body) {
  LayeredTransaction directory({directory_}, {});
  SW_CHECK_OK(body(directory));
  return directory.failure() ? Result<void>(*directory.failure()) : Result<void>();
}

Result<void> LayeredStorage::change_directory(const TransactionBody& body, Durability durability) {
  std::unique_ptr<PendingCommit> committed;
  {
    DirectoryChange change(*this);
    SW_CHECK_OK(body(change.directory()));
    SW_TRY(committed, change.add({}, {}, durability, false));
  }
  return durability == Durability::kCommit ? committed->wait() : Result<void>();
}

Result<void> LayeredStorage::forget_relaxed() {
  std::unique_ptr<PendingCommit> committed;
  {
    DirectoryChange change(*this);
    if (relaxed_.empty()) return {};
    for (const ObjectName& name : relaxed_) {
      SW_TRY(const auto entry, find_object(change.directory(), name));
      if (!entry || entry->relaxed_epoch != epoch_) continue;
      ObjectEntry after = *entry;
      after.relaxed_epoch = 0;
      SW_CHECK_OK(put_object(change.directory(), name, after, entry));
    }
    SW_TRY(committed, change.add({}, {}, Durability::kCommit, false));
    relaxed_.clear();
  }
  return committed->wait();
}

// --- commits

namespace {

/// What the directory says of an object after a transaction.
ObjectEntry entry_after(const std::optional<ObjectEntry>& before,
                        const LayeredTransaction& transaction, std::uint64_t schema) {
  ObjectEntry after = before.value_or(ObjectEntry{});
  after.schema = schema;
  after.alarm = transaction.new_alarm();
  return after;
}

}  // namespace

Result<std::unique_ptr<PendingCommit>> LayeredStorage::commit(const std::vector<Attempt*>& attempts,
                                                              Durability durability) {
  if (!log_.can_relax()) durability = Durability::kCommit;
  std::vector<ObjectEntry> after;
  bool directory_changes = false;
  for (Attempt* const attempt : attempts) {
    const std::optional<ObjectEntry>& before = attempt->object().entry;
    ObjectEntry& entry =
        after.emplace_back(entry_after(before, attempt->transaction(), attempt->schema()));
    if (durability == Durability::kRelaxed) entry.relaxed_epoch = epoch_;
    else if (entry.relaxed_epoch != epoch_) entry.relaxed_epoch = 0;
    directory_changes = directory_changes || !before || *before != entry;
  }
  return directory_changes ? commit_with_directory(attempts, std::move(after), durability)
                           : commit_rows(attempts, durability);
}

/// Objects that are as before but for their rows.
Result<std::unique_ptr<PendingCommit>> LayeredStorage::commit_rows(
    const std::vector<Attempt*>& attempts, Durability durability) {
  std::vector<Record::Owned> objects;
  std::vector<CommitRecord::Part> parts;
  for (Attempt* const attempt : attempts) {
    objects.push_back(attempt->owned());
    parts.push_back({attempt->object().layers.front(),
                     std::make_shared<const Rows>(attempt->transaction().take_rows())});
  }
  return log_.add(
      std::make_shared<Record>(*this, std::move(objects), std::move(parts), durability, false));
}

Result<std::unique_ptr<PendingCommit>> LayeredStorage::commit_with_directory(
    const std::vector<Attempt*>& attempts, std::vector<ObjectEntry> after, Durability durability) {
  std::unique_ptr<PendingCommit> committed;
  std::vector<LayerPtr> made(attempts.size());
  {
    DirectoryChange change(*this);
    std::vector<Record::Owned> objects;
    std::vector<CommitRecord::Part> parts;
    for (std::size_t i = 0; i < attempts.size(); ++i) {
      Object& object = attempts[i]->object();
      // The mark has to be on disk before the first change that may be lost.
      if (after[i].relaxed_epoch == epoch_ &&
          (!object.entry || object.entry->relaxed_epoch != epoch_)) {
        durability = Durability::kCommit;
        relaxed_.insert(object.name);
      }
      if (!object.entry) {
        SW_TRY(made[i], change.new_layer(true));
        after[i].layers = {made[i]->number()};
      }
      SW_CHECK_OK(put_object(change.directory(), object.name, after[i], object.entry));
      objects.push_back(attempts[i]->owned());
      parts.push_back({made[i] ? made[i] : object.layers.front(),
                       std::make_shared<const Rows>(attempts[i]->transaction().take_rows())});
    }
    SW_TRY(committed, change.add(std::move(objects), std::move(parts), durability, false));
  }
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    Object& object = attempts[i]->object();
    const bool alarm_set = !object.entry || object.entry->alarm != after[i].alarm;
    if (alarm_set && after[i].alarm) tell_alarm(*after[i].alarm);
    object.entry = std::move(after[i]);
    if (made[i]) object.layers = {made[i]};
  }
  return committed;
}

// --- whole objects

Result<std::unique_ptr<ObjectStorage>> LayeredStorage::open(const ObjectName& name,
                                                            const Schema& schema) {
  SW_CHECK_OK(check_name(name));
  ObjectPtr opened = object(name);
  const std::uint64_t generation = next_generation();
  {
    const Held held({opened.get()});
    opened->generation = generation;
  }
  return std::unique_ptr<ObjectStorage>(
      std::make_unique<Handle>(*this, std::move(opened), schema, generation));
}

Result<std::optional<ObjectInfo>> LayeredStorage::find(const ObjectName& name) {
  SW_CHECK_OK(check_name(name));
  std::optional<ObjectInfo> info;
  SW_CHECK_OK(read_directory([&](Reader& directory) -> Result<void> {
    SW_TRY(const auto entry, find_object(directory, name));
    if (entry) info = ObjectInfo{name, entry->alarm};
    return {};
  }));
  return info;
}

Result<std::vector<ObjectInfo>> LayeredStorage::list(std::string_view class_name,
                                                     std::string_view after_id,
                                                     std::size_t count_max) {
  std::vector<ObjectInfo> found;
  SW_CHECK_OK(read_directory([&](Reader& directory) -> Result<void> {
    SW_TRY(found, list_objects(directory, class_name, after_id, count_max));
    return {};
  }));
  return found;
}

Result<std::vector<DueAlarm>> LayeredStorage::alarms_until(Time until, std::size_t count_max) {
  std::vector<DueAlarm> due;
  SW_CHECK_OK(read_directory([&](Reader& directory) -> Result<void> {
    SW_TRY(due, list_alarms(directory, until, count_max));
    return {};
  }));
  return due;
}

void LayeredStorage::on_alarm_set(std::function<void(Time)> listener) {
  const MutexLock lock(listener_mutex_);
  listener_ = std::move(listener);
}

void LayeredStorage::tell_alarm(Time time) {
  std::function<void(Time)> listener;
  {
    const MutexLock lock(listener_mutex_);
    listener = listener_;
  }
  if (listener) listener(time);
}

Result<BackupReport> LayeredStorage::back_up(const std::filesystem::path& /*destination*/) {
  return Error{ErrorCode::kNotSupported, "what is in memory only cannot be backed up"};
}

Result<void> LayeredStorage::remove(const ObjectName& name) {
  SW_TRY(const auto info, find(name));
  if (!info) return Error{ErrorCode::kNotFound, fmt::format("no object {}", to_string(name)), 0};
  return change({.removed = {name}}, std::nullopt);
}

Result<void> LayeredStorage::change(const Changes& changes) {
  return change(changes, std::nullopt);
}

}  // namespace sw::storage
