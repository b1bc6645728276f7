// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Removing and copying whole objects.

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "storage/directory_change.h"
#include "storage/layer_merge.h"
#include "storage/layered_object.h"

namespace sw::storage {

class LayeredStorage::ObjectsChange {
 public:
  ObjectsChange(LayeredStorage& storage, DirectoryChange& change,
                std::map<ObjectName, ObjectPtr>& objects)
      : storage_(storage), change_(change), objects_(objects) {}

  Result<void> remove(const ObjectName& name) {
    SW_TRY(const auto entry, find_object(change_.directory(), name));
    lost_[name] = objects_.at(name);
    if (!entry) return {};
    SW_CHECK_OK(change_.release(entry->layers));
    return erase_object(change_.directory(), name, *entry);
  }

  Result<void> copy(const Changes::Copy& copy) {
    SW_CHECK_OK(remove(copy.to));
    SW_TRY(const auto from, find_object(change_.directory(), copy.from));
    if (!from) {
      return Error{ErrorCode::kNotFound, fmt::format("no object {}", to_string(copy.from)), 0};
    }
    SW_TRY(const std::vector<LayerNumber> below, freeze(copy.from, *from));
    SW_TRY(const LayerPtr own, change_.new_layer(false));
    SW_CHECK_OK(change_.share(below));
    ObjectEntry entry{.layers = {own->number()}, .schema = from->schema, .alarm = {}};
    entry.layers.insert(entry.layers.end(), below.begin(), below.end());
    if (copy.body) SW_CHECK_OK(fill(own, entry, copy.body));
    // Whoever goes on from here gets more layers; most copies stay as they are.
    if (entry.layers.size() > kShallowStack) deep_.insert(copy.from);
    if (entry.layers.size() > kDeepStack) deep_.insert(copy.to);
    return put_object(change_.directory(), copy.to, entry, std::nullopt);
  }

  Result<std::unique_ptr<PendingCommit>> add(bool frees_space) {
    std::vector<Record::Owned> owned;
    for (const auto& [name, object] : objects_) owned.push_back({object, object->generation});
    return change_.add(std::move(owned), std::move(parts_), Durability::kCommit, frees_space);
  }

  /// Those that may have too many layers.
  std::vector<ObjectName> deep() const { return {deep_.begin(), deep_.end()}; }

  /// The commit has its place: what is known of the objects follows it.
  void took_place(std::optional<std::uint64_t> keep_owner) {
    for (const auto& [name, object] : objects_) object->stale = true;
    for (const auto& [name, object] : lost_) {
      if (!keep_owner) object->generation = storage_.next_generation();
    }
  }

 private:
  /// The layers that the object and its copy are to share. It gets another for its changes, unless
  /// it has one that is still empty.
  Result<std::vector<LayerNumber>> freeze(const ObjectName& name, const ObjectEntry& entry) {
    SW_TRY(const auto top, find_layer(change_.directory(), entry.layers.front()));
    if (entry.layers.size() > 1 && top && !top->stored &&
        storage_.layers_.get(entry.layers.front(), Stored::kNo)->has_none_in_memory()) {
      return std::vector<LayerNumber>(entry.layers.begin() + 1, entry.layers.end());
    }
    if (entry.layers.size() + 1 > kLayersMax) {
      return Error{ErrorCode::kUnavailable,
                   fmt::format("{} was copied so often that its {} layers have to be merged first",
                               to_string(name), entry.layers.size())};
    }
    SW_TRY(const LayerPtr own, change_.new_layer(false));
    ObjectEntry after = entry;
    after.layers.insert(after.layers.begin(), own->number());
    SW_CHECK_OK(put_object(change_.directory(), name, after, entry));
    return entry.layers;
  }

  Result<void> fill(const LayerPtr& own, ObjectEntry& entry, const TransactionBody& body) {
    std::vector<LayerPtr> layers{own};
    for (std::size_t i = 1; i < entry.layers.size(); ++i) {
      SW_TRY(const auto layer, find_layer(change_.directory(), entry.layers[i]));
      layers.push_back(storage_.layers_.get(entry.layers[i],
                                            layer && layer->stored ? Stored::kYes : Stored::kNo));
    }
    LayeredTransaction transaction(std::move(layers), std::nullopt);
    SW_CHECK_OK(body(transaction));
    if (transaction.failure()) return *transaction.failure();
    entry.alarm = transaction.new_alarm();
    parts_.push_back({own, std::make_shared<const Rows>(transaction.take_rows())});
    return {};
  }

  LayeredStorage& storage_;
  DirectoryChange& change_;
  std::map<ObjectName, ObjectPtr>& objects_;  // all that take part
  std::map<ObjectName, ObjectPtr> lost_;      // that are gone, or others now
  std::vector<CommitRecord::Part> parts_;
  std::set<ObjectName> deep_;
};

Result<void> LayeredStorage::change(const Changes& changes,
                                    std::optional<std::uint64_t> keep_owner) {
  std::map<ObjectName, ObjectPtr> objects;
  const auto add = [&](const ObjectName& name) -> Result<void> {
    SW_CHECK_OK(check_name(name));
    objects.emplace(name, object(name));
    return {};
  };
  for (const ObjectName& name : changes.removed) SW_CHECK_OK(add(name));
  for (const Changes::Copy& copy : changes.copies) {
    SW_CHECK_OK(add(copy.from));
    SW_CHECK_OK(add(copy.to));
  }
  std::unique_ptr<PendingCommit> committed;
  std::vector<LayerNumber> unused;
  std::vector<ObjectName> deep;
  {
    std::vector<Object*> all;
    for (const auto& [name, object] : objects) all.push_back(object.get());
    const Held held(std::move(all));
    if (keep_owner && objects.begin()->second->generation != *keep_owner) return lost_ownership();
    DirectoryChange directory(*this);
    ObjectsChange change(*this, directory, objects);
    for (const ObjectName& name : changes.removed) SW_CHECK_OK(change.remove(name));
    for (const Changes::Copy& copy : changes.copies) SW_CHECK_OK(change.copy(copy));
    SW_TRY(committed, change.add(changes.copies.empty()));
    change.took_place(keep_owner);
    unused = directory.unused();
    deep = change.deep();
  }
  SW_CHECK_OK(committed->wait());
  for (const LayerNumber number : unused) layers_.discard(number);
  merge_wanted(deep);
  return {};
}

}  // namespace sw::storage
