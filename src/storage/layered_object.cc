// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/layered_object.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/directory_change.h"

namespace sw::storage {

// --- what is shared

LayeredStorage::Held::Held(std::vector<Object*> objects) SW_NO_THREAD_SAFETY_ANALYSIS
    : objects_(std::move(objects)) {
  // All take them in one order.
  std::ranges::sort(objects_);
  objects_.erase(std::unique(objects_.begin(), objects_.end()), objects_.end());
  for (Object* const object : objects_) object->use.lock();
}

LayeredStorage::Held::~Held() SW_NO_THREAD_SAFETY_ANALYSIS {
  for (Object* const object : objects_) object->use.unlock();
}

bool LayeredStorage::Record::is_valid() const {
  return std::ranges::all_of(
      objects_, [](const Owned& owned) { return owned.object->generation == owned.generation; });
}

void LayeredStorage::Record::failed() {
  storage_.epoch_written_ = false;
  for (const Owned& owned : objects_) owned.object->lose(storage_.next_generation());
}

// --- handles

Result<void> LayeredStorage::Handle::check_owner() const {
  if (is_owner()) return {};
  return Error{ErrorCode::kConflict,
               fmt::format("{} is now owned by another opener", to_string(name())), 0};
}

bool LayeredStorage::Handle::may_miss_changes() const {
  const Held held({object_.get()});
  if (!storage_.load(*object_).ok() || !object_->entry) return false;
  const std::uint64_t epoch = object_->entry->relaxed_epoch;
  return epoch != 0 && epoch != storage_.epoch_;
}

bool LayeredStorage::Handle::is_beside(const ObjectStorage& other) const {
  const auto* const handle = dynamic_cast<const Handle*>(&other);
  return handle != nullptr && &handle->storage_ == &storage_;
}

Result<std::uint64_t> LayeredStorage::Handle::upgrade(LayeredTransaction& transaction) const {
  const std::uint64_t version = object_->entry ? object_->entry->schema : 0;
  const std::uint64_t known = schema_.steps.size();
  if (version > known) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} has schema version {}, but this program supports at most {}: it "
                             "was written by a newer version",
                             to_string(name()), version, known),
                 0};
  }
  for (std::uint64_t step = version; step < known; ++step) {
    auto done = schema_.steps[step](transaction);
    if (!done.ok()) {
      return std::move(done).error().while_doing(
          fmt::format("bringing {} to schema version {}", to_string(name()), step + 1));
    }
  }
  if (transaction.failure()) return *transaction.failure();
  return known;
}

Result<void> LayeredStorage::Attempt::run() {
  SW_CHECK_OK(handle_.check_owner());
  Object& object = *handle_.object_;
  SW_CHECK_OK(handle_.storage_.load(object));
  const int times = handle_.storage_.bodies_ == Bodies::kTwice ? 2 : 1;
  for (int i = 0; i < times; ++i) {
    transaction_.emplace(object.layers, object.entry ? object.entry->alarm : std::nullopt);
    SW_TRY(schema_, handle_.upgrade(*transaction_));
    if (!object.entry) transaction_->forget_that_it_wrote();
    SW_CHECK_OK(body_(*transaction_));
    if (transaction_->failure()) return *transaction_->failure();
  }
  return {};
}

bool LayeredStorage::Attempt::changes() const {
  const std::optional<ObjectEntry>& entry = handle_.object_->entry;
  if (transaction_->wrote()) return true;
  return entry && entry->schema != schema_;
}

Result<void> LayeredStorage::Handle::read(const ReadBody& body) {
  const Held held({object_.get()});
  const TransactionBody reading = [&](Transaction& transaction) { return body(transaction); };
  Attempt attempt(*this, reading);
  SW_CHECK_OK(attempt.run());
  // What the schema's steps changed is there from now on.
  if (!object_->entry || object_->entry->schema == attempt.schema()) return {};
  SW_TRY(const auto committed, storage_.commit({&attempt}, Durability::kCommit));
  return committed->wait();
}

Result<void> LayeredStorage::Handle::transact(const TransactionBody& body, CommitOptions options) {
  std::vector<std::unique_ptr<Attempt>> attempts;
  attempts.push_back(std::make_unique<Attempt>(*this, body));
  for (const Part& part : options.also) {
    attempts.push_back(std::make_unique<Attempt>(dynamic_cast<Handle&>(part.object), part.body));
  }
  std::unique_ptr<PendingCommit> committed;
  {
    std::vector<Object*> objects;
    for (const auto& attempt : attempts) objects.push_back(&attempt->object());
    const Held held(std::move(objects));
    std::vector<Attempt*> changed;
    for (const auto& attempt : attempts) {
      SW_CHECK_OK(attempt->run());
      if (attempt->changes()) changed.push_back(attempt.get());
    }
    if (!changed.empty()) {
      auto added = storage_.commit(changed, options.durability);
      failed_ = failed_ || !added.ok();
      if (!added.ok()) return std::move(added).error();
      committed = *std::move(added);
    }
  }
  if (!committed) return {};
  if (!options.pending) return committed->wait();
  *options.pending = std::move(committed);
  return {};
}

Result<void> LayeredStorage::Handle::destroy() {
  return storage_.change({.removed = {name()}}, generation_);
}

}  // namespace sw::storage
