// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// An object of a LayeredStorage, the handles to it, and the commits that change it.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "storage/layered_storage.h"

namespace sw::storage {

/// What all handles to an object share.
class LayeredStorage::Object {
 public:
  explicit Object(ObjectName object_name) : name(std::move(object_name)) {}

  /// Whoever relies on what was read or owned so far has to begin anew.
  void lose(std::uint64_t next_generation) {
    generation = next_generation;
    stale = true;
  }

  const ObjectName name;
  /// Held through every transaction, and every change of the owner.
  Mutex use;
  std::atomic<std::uint64_t> generation{0};  // the owner's
  std::atomic<bool> stale{true};             // the rest has to be read again

  // Under `use`. (The analysis cannot follow locks of several objects at once.)
  std::optional<ObjectEntry> entry;
  std::vector<LayerPtr> layers;
};

/// Holds several objects, each once, in an order that all keep to.
class LayeredStorage::Held {
 public:
  explicit Held(std::vector<Object*> objects);
  ~Held();
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  std::vector<Object*> objects_;
};

class LayeredStorage::Record final : public CommitRecord {
 public:
  struct Owned {
    ObjectPtr object;  // shared with its handles
    std::uint64_t generation;
  };
  Record(LayeredStorage& storage, std::vector<Owned> objects, std::vector<Part> parts,
         Durability durability, bool frees_space)
      : CommitRecord(std::move(parts), durability, frees_space),
        storage_(storage),
        objects_(std::move(objects)) {}

  bool is_valid() const override;
  void failed() override;

 private:
  LayeredStorage& storage_;
  const std::vector<Owned> objects_;
};

class LayeredStorage::Handle final : public ObjectStorage {
 public:
  Handle(LayeredStorage& storage, ObjectPtr object, Schema schema, std::uint64_t generation)
      : storage_(storage),
        object_(std::move(object)),
        schema_(std::move(schema)),
        generation_(generation) {}

  const ObjectName& name() const override { return object_->name; }
  std::uint64_t generation() const override { return generation_; }
  bool lost() const override { return failed_ || !is_owner(); }
  bool may_miss_changes() const override;
  bool is_beside(const ObjectStorage& other) const override;
  Result<void> read(const ReadBody& body) override;
  Result<void> transact(const TransactionBody& body, CommitOptions options) override;
  using ObjectStorage::transact;
  Result<void> destroy() override;

 private:
  friend class Attempt;
  bool is_owner() const { return object_->generation == generation_; }
  Result<void> check_owner() const;
  /// Runs the schema's steps that the object has not seen. The version it has then.
  Result<std::uint64_t> upgrade(LayeredTransaction& transaction) const;

  LayeredStorage& storage_;
  const ObjectPtr object_;  // shared with other handles to it
  const Schema schema_;
  const std::uint64_t generation_;
  std::atomic<bool> failed_{false};  // a commit did
};

/// What one commit does to one object.
class LayeredStorage::Attempt {
 public:
  Attempt(Handle& handle, const TransactionBody& body) : handle_(handle), body_(body) {}

  Result<void> run();
  /// Whether there is anything to commit.
  bool changes() const;
  Object& object() const { return *handle_.object_; }
  Record::Owned owned() const { return {handle_.object_, handle_.generation_}; }
  Handle& handle() const { return handle_; }

  LayeredTransaction& transaction() { return *transaction_; }
  const LayeredTransaction& transaction() const { return *transaction_; }
  std::uint64_t schema() const { return schema_; }

 private:
  Handle& handle_;
  const TransactionBody& body_;
  std::optional<LayeredTransaction> transaction_;
  std::uint64_t schema_ = 0;
};

}  // namespace sw::storage
