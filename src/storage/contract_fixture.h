// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The implementations of Storage, all of which go through the tests of the contract.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "storage/memory/memory_storage.h"
#include "storage/sqlite/sqlite_storage.h"
#include "storage/storage.h"

namespace sw::storage {

inline Time at(std::int64_t ms) { return Time(std::chrono::milliseconds(ms)); }
inline std::string repeated(char c, std::size_t count) { return std::string(count, c); }

class Backend {
 public:
  virtual ~Backend() = default;
  /// Ends the storage, if there is one, and starts another over what it left.
  virtual Storage& restart() = 0;
};

template <Bodies kBodies>
class AnyMemoryBackend final : public Backend {
 public:
  Storage& restart() override {
    storage_.reset();
    storage_ = open_memory_storage(disk_);
    return *storage_;
  }

 private:
  MemoryDisk disk_{kBodies};
  std::unique_ptr<Storage> storage_;
};
using MemoryBackend = AnyMemoryBackend<Bodies::kOnce>;
/// Runs each body twice, the first time in vain.
using TwiceBackend = AnyMemoryBackend<Bodies::kTwice>;

class SqliteBackend final : public Backend {
 public:
  Storage& restart() override {
    storage_.reset();
    auto opened =
        open_sqlite_storage(folder_.path(), {.idle_open_max = 2, .vfs = {}, .on_notice = {}});
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    storage_ = *std::move(opened);
    return *storage_;
  }

 private:
  TemporaryDirectory folder_ =
      *TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-contract-");
  std::unique_ptr<Storage> storage_;
};

template <class T>
class StorageContract : public testing::Test {
 protected:
  StorageContract() : storage_(&backend_.restart()) {}

  void restart() {
    objects_.clear();
    storage_ = &backend_.restart();
  }

  ObjectStorage& open(const ObjectName& name, const Schema& schema = {}) {
    auto opened = storage_->open(name, schema);
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    objects_.push_back(*std::move(opened));
    return *objects_.back();
  }

  static Result<void> put(ObjectStorage& object, std::string key, std::string value,
                          TableId table = 1) {
    return object.transact(
        [&](Transaction& transaction) { return transaction.put(table, key, as_bytes(value)); });
  }

  static std::string get(ObjectStorage& object, std::string key, TableId table = 1) {
    std::string text = "(nothing)";
    const auto done = object.read([&](Reader& reader) -> Result<void> {
      SW_TRY(const auto value, reader.get(table, key));
      if (value) text = as_text(*value);
      return {};
    });
    return done.ok() ? text
                     : std::string(code_name(done.error().code)) + ": " + done.error().message;
  }

  static std::string keys(ObjectStorage& object, const Range& range,
                          Order order = Order::kAscending) {
    std::string found;
    EXPECT_TRUE(object
                    .read([&](Reader& reader) {
                      return reader.scan_keys(range, order, [&](std::string_view key, std::size_t) {
                        found += std::string(key) + " ";
                        return Result<Scan>(Scan::kContinue);
                      });
                    })
                    .ok());
    return found;
  }

  static Result<void> set_alarm(ObjectStorage& object, std::optional<Time> time) {
    return object.transact([&](Transaction& transaction) { return transaction.set_alarm(time); });
  }

  std::string due(Time until, std::size_t count_max = 100) {
    auto alarms = storage_->alarms_until(until, count_max);
    EXPECT_TRUE(alarms.ok()) << alarms.error().message;
    std::string text;
    for (const DueAlarm& alarm : *alarms) {
      text += alarm.name.id + "@" + std::to_string(alarm.time.time_since_epoch().count()) + " ";
    }
    return text;
  }

  std::string listed(std::string_view class_name, std::string_view after = "",
                     std::size_t count_max = 100) {
    auto found = storage_->list(class_name, after, count_max);
    EXPECT_TRUE(found.ok()) << found.error().message;
    std::string text;
    for (const ObjectInfo& info : *found) text += info.name.id + " ";
    return text;
  }

  T backend_;
  Storage* storage_;  // the backend's, until its next restart
  std::vector<std::unique_ptr<ObjectStorage>> objects_;
};

using Backends = testing::Types<MemoryBackend, SqliteBackend>;
class BackendNames {
 public:
  template <class T>
  static std::string GetName(int /*index*/) {
    return std::is_same_v<T, MemoryBackend> ? "Memory" : "Sqlite";
  }
};
TYPED_TEST_SUITE(StorageContract, Backends, BackendNames);

}  // namespace sw::storage
