// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// What every implementation of Storage keeps to.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "storage/memory/memory_storage.h"
#include "storage/sqlite/sqlite_storage.h"
#include "storage/storage.h"

namespace sw::storage {
namespace {

using std::chrono::milliseconds;

Time at(std::int64_t ms) { return Time(milliseconds(ms)); }
std::string repeated(char c, std::size_t count) { return std::string(count, c); }

class Backend {
 public:
  virtual ~Backend() = default;
  /// Ends the storage, if there is one, and starts another over what it left.
  virtual Storage& restart() = 0;
};

class MemoryBackend final : public Backend {
 public:
  Storage& restart() override {
    storage_.reset();
    storage_ = open_memory_storage(disk_);
    return *storage_;
  }

 private:
  MemoryDisk disk_;
  std::unique_ptr<Storage> storage_;
};

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

TYPED_TEST(StorageContract, WhatWasCommittedIsThereAfterARestart) {
  ASSERT_TRUE(this->put(this->open({"a", "1"}), "key", "value").ok());
  this->restart();
  EXPECT_EQ(this->get(this->open({"a", "1"}), "key"), "value");
}

TYPED_TEST(StorageContract, OpeningAndReadingLeaveNoTrace) {
  ObjectStorage& object = this->open({"a", "1"});
  EXPECT_EQ(this->get(object, "key"), "(nothing)");
  ASSERT_TRUE(object.transact([](Transaction&) { return Result<void>(); }).ok());
  EXPECT_FALSE((*this->storage_->find({"a", "1"})).has_value());
  EXPECT_EQ(this->listed("a"), "");
}

TYPED_TEST(StorageContract, AnObjectWhoseFirstTransactionFailsDoesNotExist) {
  ObjectStorage& object = this->open({"a", "1"});
  const auto failed = object.transact([](Transaction& transaction) -> Result<void> {
    SW_CHECK_OK(transaction.put(1, "key", as_bytes("value")));
    return Error{ErrorCode::kLimitExceeded, "changed my mind", 0};
  });
  EXPECT_EQ(failed.error().message, "changed my mind");
  EXPECT_FALSE((*this->storage_->find({"a", "1"})).has_value());
  ASSERT_TRUE(this->put(object, "key", "second try").ok());
  EXPECT_EQ(this->get(object, "key"), "second try");
}

TYPED_TEST(StorageContract, AFailedTransactionChangesNothing) {
  ObjectStorage& object = this->open({"a", "1"});
  ASSERT_TRUE(this->put(object, "key", "old").ok());
  ASSERT_TRUE(this->set_alarm(object, at(5)).ok());
  const auto failed = object.transact([](Transaction& transaction) -> Result<void> {
    SW_CHECK_OK(transaction.put(1, "key", as_bytes("new")));
    SW_CHECK_OK(transaction.put(1, "other", as_bytes("new")));
    SW_CHECK_OK(transaction.set_alarm(at(1)));
    return Error{ErrorCode::kInternal, "no", 0};
  });
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(this->get(object, "key"), "old");
  EXPECT_EQ(this->get(object, "other"), "(nothing)");
  EXPECT_EQ(this->due(at(100)), "1@5 ");
}

TYPED_TEST(StorageContract, AnExceptionInTheBodyUndoesItToo) {
  ObjectStorage& object = this->open({"a", "1"});
  ASSERT_TRUE(this->put(object, "key", "old").ok());
  EXPECT_THROW((void)object.transact([](Transaction& transaction) -> Result<void> {
    SW_CHECK_OK(transaction.put(1, "key", as_bytes("new")));
    throw std::runtime_error("no");
  }),
               std::runtime_error);
  EXPECT_EQ(this->get(object, "key"), "old");
  ASSERT_TRUE(this->put(object, "key", "newer").ok());
}

TYPED_TEST(StorageContract, ATransactionSeesItsOwnChanges) {
  ObjectStorage& object = this->open({"a", "1"});
  ASSERT_TRUE(object
                  .transact([](Transaction& transaction) -> Result<void> {
                    SW_CHECK_OK(transaction.put(1, "a", as_bytes("1")));
                    SW_CHECK_OK(transaction.put(1, "b", as_bytes("2")));
                    SW_CHECK_OK(transaction.erase(1, "a"));
                    SW_CHECK_OK(transaction.set_alarm(at(9)));
                    SW_TRY(const auto a, transaction.get(1, "a"));
                    SW_TRY(const auto b, transaction.get(1, "b"));
                    SW_TRY(const auto alarm, transaction.alarm());
                    EXPECT_FALSE(a.has_value());
                    EXPECT_EQ(as_text(b.value_or(Bytes())), "2");
                    EXPECT_EQ(alarm, at(9));
                    return {};
                  })
                  .ok());
}

TYPED_TEST(StorageContract, KeysAreUnsignedBytesOfAnyValue) {
  ObjectStorage& object = this->open({"a", "1"});
  const std::string odd[] = {
      std::string(), std::string("\0", 1), std::string("\0a", 2), "a", "a\xff", "b", "\x80",
      "\xff\xff"};
  for (const std::string& key : odd) ASSERT_TRUE(this->put(object, key, "v" + key).ok());
  for (const std::string& key : odd) EXPECT_EQ(this->get(object, key), "v" + key);
  std::string all;
  for (const std::string& key : odd) all += key + " ";
  EXPECT_EQ(this->keys(object, {1, "", ""}), all);
}

TYPED_TEST(StorageContract, ScansKeepToTheirTableRangeAndOrder) {
  ObjectStorage& object = this->open({"a", "1"});
  for (const char* key : {"a", "b", "ba", "bb", "c"}) ASSERT_TRUE(this->put(object, key, "x").ok());
  ASSERT_TRUE(this->put(object, "b", "x", 0).ok());
  ASSERT_TRUE(this->put(object, "b", "x", 2).ok());
  EXPECT_EQ(this->keys(object, {1, "b", "c"}), "b ba bb ");
  EXPECT_EQ(this->keys(object, {1, "b", ""}, Order::kDescending), "c bb ba b ");
  EXPECT_EQ(this->keys(object, {1, "", "b"}), "a ");
  EXPECT_EQ(this->keys(object, {1, "c", "b"}), "");
  EXPECT_EQ(this->keys(object, {1, "b", "b"}), "");
  EXPECT_EQ(this->keys(object, Range::of_prefix(1, "b"), Order::kDescending), "bb ba b ");
  EXPECT_EQ(this->keys(object, {3, "", ""}), "");
}

TYPED_TEST(StorageContract, AScanStopsWhereItIsToldAndPassesErrorsOn) {
  ObjectStorage& object = this->open({"a", "1"});
  for (const char* key : {"a", "b", "c"})
    ASSERT_TRUE(this->put(object, key, std::string("v") + key).ok());
  std::string seen;
  const auto scan = [&](Result<Scan> at_b) {
    return object.read([&](Reader& reader) {
      return reader.scan({1, "", ""}, Order::kAscending,
                         [&](std::string_view key, BytesView value) -> Result<Scan> {
                           seen += std::string(key) + "=" + std::string(as_text(value)) + " ";
                           return key == "b" ? at_b : Result<Scan>(Scan::kContinue);
                         });
    });
  };
  EXPECT_TRUE(scan(Scan::kStop).ok());
  EXPECT_EQ(seen, "a=va b=vb ");
  const auto failed = scan(Error{ErrorCode::kCorrupt, "bad b", 0});
  EXPECT_EQ(failed.error().message, "bad b");
}

TYPED_TEST(StorageContract, ScansMayBeNested) {
  ObjectStorage& object = this->open({"a", "1"});
  for (const char* key : {"a", "b"}) ASSERT_TRUE(this->put(object, key, "x").ok());
  std::string pairs;
  ASSERT_TRUE(
      object
          .read([&](Reader& reader) {
            const Range all{1, "", ""};
            return reader.scan_keys(all, Order::kAscending, [&](std::string_view x, std::size_t) {
              auto inner =
                  reader.scan_keys(all, Order::kAscending, [&](std::string_view y, std::size_t) {
                    pairs += std::string(x) + std::string(y) + " ";
                    return Result<Scan>(Scan::kContinue);
                  });
              EXPECT_TRUE(inner.ok());
              return Result<Scan>(Scan::kContinue);
            });
          })
          .ok());
  EXPECT_EQ(pairs, "aa ab ba bb ");
}

TYPED_TEST(StorageContract, ValuesOfEverySizeComeBackAndTellTheirLength) {
  ObjectStorage& object = this->open({"a", "1"});
  // Around the sizes at which an implementation may store them differently; longer and shorter in
  // turn.
  const std::size_t sizes[] = {0,     1,    255,   256,  257,    900,   989,
                               990,   1100, 1020,  4096, 2000,   65535, 65536,
                               65537, 3000, 70000, 5000, 300000, 100,   0};
  for (const std::size_t size : sizes) {
    std::string value = repeated('x', size);
    if (size > 0) value.back() = 'y';
    ASSERT_TRUE(this->put(object, "key", value).ok());
    EXPECT_EQ(this->get(object, "key"), value) << size;
    ASSERT_TRUE(object
                    .read([&](Reader& reader) {
                      return reader.scan_keys({1, "", ""}, Order::kAscending,
                                              [&](std::string_view, std::size_t bytes) {
                                                EXPECT_EQ(bytes, size);
                                                return Result<Scan>(Scan::kContinue);
                                              });
                    })
                    .ok());
  }
}

TYPED_TEST(StorageContract, HoldsValuesOfTensOfMegabytes) {
  ObjectStorage& object = this->open({"a", "1"});
  const std::string large = repeated('m', 40U << 20U);
  ASSERT_TRUE(this->put(object, "large", large).ok());
  this->restart();
  EXPECT_TRUE(this->get(this->open({"a", "1"}), "large") == large);
}

TYPED_TEST(StorageContract, KeysAndValuesHaveLimits) {
  ObjectStorage& object = this->open({"a", "1"});
  EXPECT_TRUE(this->put(object, repeated('k', kKeyBytesMax), "x").ok());
  EXPECT_EQ(this->put(object, repeated('k', kKeyBytesMax + 1), "x").error().code,
            ErrorCode::kLimitExceeded);
  const Bytes huge(kValueBytesMax + 1);
  // The body ignores the error; the transaction does not.
  const auto ignored = object.transact([&](Transaction& transaction) -> Result<void> {
    SW_CHECK_OK(transaction.put(1, "other", as_bytes("x")));
    (void)transaction.put(1, "huge", huge).ok();
    return {};
  });
  EXPECT_EQ(ignored.error().code, ErrorCode::kLimitExceeded);
  EXPECT_EQ(this->get(object, "other"), "(nothing)");
}

TYPED_TEST(StorageContract, ErasesRowsAndRanges) {
  ObjectStorage& object = this->open({"a", "1"});
  for (const char* key : {"a", "b", "c", "d", "e"}) ASSERT_TRUE(this->put(object, key, "x").ok());
  ASSERT_TRUE(this->put(object, "b", "x", 2).ok());
  ASSERT_TRUE(object
                  .transact([](Transaction& transaction) -> Result<void> {
                    SW_CHECK_OK(transaction.erase(1, "none"));
                    SW_CHECK_OK(transaction.erase(1, "a"));
                    return transaction.erase_range({1, "c", "e"});
                  })
                  .ok());
  EXPECT_EQ(this->keys(object, {1, "", ""}), "b e ");
  ASSERT_TRUE(object
                  .transact([](Transaction& transaction) {
                    return transaction.erase_range({1, "c", ""});
                  })
                  .ok());
  EXPECT_EQ(this->keys(object, {1, "", ""}), "b ");
  EXPECT_EQ(this->keys(object, {2, "", ""}), "b ");
}

TYPED_TEST(StorageContract, AlarmsAreListedByTimeAndSurviveARestart) {
  ASSERT_TRUE(this->set_alarm(this->open({"a", "late"}), at(300)).ok());
  ASSERT_TRUE(this->set_alarm(this->open({"a", "early"}), at(100)).ok());
  ASSERT_TRUE(this->set_alarm(this->open({"b", "middle"}), at(200)).ok());
  ASSERT_TRUE(this->put(this->open({"b", "none"}), "key", "x").ok());
  this->restart();
  EXPECT_EQ(this->due(at(99)), "");
  EXPECT_EQ(this->due(at(200)), "early@100 middle@200 ");
  EXPECT_EQ(this->due(Time::max()), "early@100 middle@200 late@300 ");
  EXPECT_EQ(this->due(Time::max(), 1), "early@100 ");
  EXPECT_EQ((*this->storage_->find({"a", "late"}))->alarm, at(300));
}

TYPED_TEST(StorageContract, AnAlarmMovesBothWaysAndGoes) {
  ObjectStorage& object = this->open({"a", "x"});
  ASSERT_TRUE(this->set_alarm(this->open({"a", "y"}), at(50)).ok());
  const std::pair<std::optional<Time>, const char*> steps[] = {
      {at(100), "y@50 x@100 "}, {at(10), "x@10 y@50 "}, {at(70), "y@50 x@70 "},
      {std::nullopt, "y@50 "},  {at(-5), "x@-5 y@50 "}, {at(60), "y@50 x@60 "}};
  for (const auto& [time, expected] : steps) {
    ASSERT_TRUE(this->set_alarm(object, time).ok());
    EXPECT_EQ(this->due(Time::max()), expected);
  }
  this->restart();
  EXPECT_EQ(this->due(Time::max()), "y@50 x@60 ");
}

TYPED_TEST(StorageContract, ListsAClassByIdPageByPage) {
  for (const char* id : {"b", "a", "c\xff", "d"})
    ASSERT_TRUE(this->put(this->open({"one", id}), "k", "v").ok());
  ASSERT_TRUE(this->put(this->open({"two", "a"}), "k", "v").ok());
  EXPECT_EQ(this->listed("one"), "a b c\xff d ");
  EXPECT_EQ(this->listed("one", "", 2), "a b ");
  EXPECT_EQ(this->listed("one", "b", 2), "c\xff d ");
  EXPECT_EQ(this->listed("none"), "");
}

TYPED_TEST(StorageContract, TheLastOneToOpenAnObjectOwnsIt) {
  ObjectStorage& first = this->open({"a", "1"});
  ASSERT_TRUE(this->put(first, "key", "first").ok());
  ObjectStorage& second = this->open({"a", "1"});
  EXPECT_GT(second.generation(), first.generation());
  EXPECT_EQ(this->put(first, "key", "late").error().code, ErrorCode::kConflict);
  EXPECT_EQ(this->get(first, "key").substr(0, 8), "conflict");
  EXPECT_EQ(first.destroy().error().code, ErrorCode::kConflict);
  EXPECT_EQ(this->get(second, "key"), "first");
  ASSERT_TRUE(this->put(second, "key", "second").ok());
  const std::uint64_t generation = second.generation();
  this->restart();
  EXPECT_GT(this->open({"a", "1"}).generation(), generation);
}

TYPED_TEST(StorageContract, AFormerOwnerCannotEvenCreateTheObject) {
  ObjectStorage& first = this->open({"a", "1"});
  this->open({"a", "1"});
  EXPECT_EQ(this->put(first, "key", "late").error().code, ErrorCode::kConflict);
  EXPECT_EQ(this->listed("a"), "");
}

TYPED_TEST(StorageContract, ARemovedObjectIsGoneWithItsAlarmAndItsOwnerIsTold) {
  ObjectStorage& object = this->open({"a", "1"});
  ASSERT_TRUE(this->put(object, "key", "value").ok());
  ASSERT_TRUE(this->set_alarm(object, at(5)).ok());
  ASSERT_TRUE(this->storage_->remove({"a", "1"}).ok());
  EXPECT_EQ(this->storage_->remove({"a", "1"}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(this->put(object, "key", "late").error().code, ErrorCode::kConflict);
  EXPECT_EQ(this->due(Time::max()), "");
  EXPECT_EQ(this->listed("a"), "");
  EXPECT_EQ(this->get(this->open({"a", "1"}), "key"), "(nothing)");
  this->restart();
  EXPECT_EQ(this->listed("a"), "");
  EXPECT_EQ(this->get(this->open({"a", "1"}), "key"), "(nothing)");
}

TYPED_TEST(StorageContract, ADestroyedObjectCanBeginANewLife) {
  ObjectStorage& object = this->open({"a", "1"});
  ASSERT_TRUE(object.destroy().ok());
  ASSERT_TRUE(this->put(object, "key", "value").ok());
  ASSERT_TRUE(this->set_alarm(object, at(5)).ok());
  ASSERT_TRUE(object.destroy().ok());
  EXPECT_EQ(this->get(object, "key"), "(nothing)");
  EXPECT_EQ(this->due(Time::max()), "");
  EXPECT_FALSE((*this->storage_->find({"a", "1"})).has_value());
  ASSERT_TRUE(this->put(object, "other", "new life").ok());
  this->restart();
  EXPECT_EQ(this->get(this->open({"a", "1"}), "other"), "new life");
  EXPECT_EQ(this->get(this->open({"a", "1"}), "key"), "(nothing)");
}

Schema counting_schema(std::size_t versions) {
  Schema schema;
  for (std::size_t version = 1; version <= versions; ++version) {
    schema.steps.push_back([version](Transaction& transaction) -> Result<void> {
      SW_TRY(const auto log, transaction.get(7, "log"));
      const std::string text = std::string(log ? as_text(*log) : "") + std::to_string(version);
      return transaction.put(7, "log", as_bytes(text));
    });
  }
  return schema;
}

TYPED_TEST(StorageContract, AnObjectGoesThroughTheSchemaStepsItHasNotSeen) {
  ASSERT_TRUE(this->put(this->open({"a", "1"}, counting_schema(2)), "key", "x").ok());
  EXPECT_EQ(this->get(this->open({"a", "1"}, counting_schema(2)), "log", 7), "12");
  this->restart();
  EXPECT_EQ(this->get(this->open({"a", "1"}, counting_schema(4)), "log", 7), "1234");
  this->restart();
  EXPECT_EQ(this->get(this->open({"a", "1"}, counting_schema(4)), "log", 7), "1234");
  EXPECT_EQ(this->get(this->open({"a", "1"}, counting_schema(4)), "key"), "x");
  // One that does not exist looks like a new one.
  EXPECT_EQ(this->get(this->open({"a", "2"}, counting_schema(3)), "log", 7), "123");
}

TYPED_TEST(StorageContract, AnObjectOfANewerProgramIsRefusedAndLeftAsItIs) {
  ASSERT_TRUE(this->put(this->open({"a", "1"}, counting_schema(3)), "key", "x").ok());
  ObjectStorage& older = this->open({"a", "1"}, counting_schema(2));
  const auto refused = this->put(older, "key", "y");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.error().message.find("a/1 has schema version 3"), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(this->get(older, "key").substr(0, 16), "invalid argument");
  ObjectStorage& newer = this->open({"a", "1"}, counting_schema(3));
  EXPECT_EQ(this->get(newer, "key"), "x");
  EXPECT_EQ(this->get(newer, "log", 7), "123");
}

TYPED_TEST(StorageContract, AMigrationThatFailsChangesNothing) {
  ASSERT_TRUE(this->put(this->open({"a", "1"}, counting_schema(1)), "key", "x").ok());
  Schema broken = counting_schema(3);
  broken.steps[2] = [](Transaction&) -> Result<void> {
    return Error{ErrorCode::kInternal, "broken", 0};
  };
  const auto failed = this->put(this->open({"a", "1"}, broken), "key", "y");
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().message.find("schema version 3: broken"), std::string::npos)
      << failed.error().message;
  ObjectStorage& fixed = this->open({"a", "1"}, counting_schema(3));
  EXPECT_EQ(this->get(fixed, "log", 7), "123");
  EXPECT_EQ(this->get(fixed, "key"), "x");
}

TYPED_TEST(StorageContract, BadNamesAreRefused) {
  EXPECT_EQ(this->storage_->open({"A", "1"}, {}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(this->storage_->find({"a", ""}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(this->storage_->remove({"", "1"}).error().code, ErrorCode::kInvalidArgument);
}

TYPED_TEST(StorageContract, ManyThreadsWorkOnManyObjects) {
  constexpr int kThreads = 4;
  constexpr int kObjects = 6;
  constexpr int kSteps = 40;
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::unique_ptr<ObjectStorage>> objects;
      for (int i = 0; i < kObjects; ++i) {
        objects.push_back(*this->storage_->open({"t" + std::to_string(t), std::to_string(i)}, {}));
      }
      for (int step = 0; step < kSteps; ++step) {
        for (auto& object : objects) {
          const auto done = object->transact([&](Transaction& transaction) -> Result<void> {
            SW_TRY(const auto before, transaction.get(1, "n"));
            const int n = before ? std::stoi(std::string(as_text(*before))) : 0;
            SW_CHECK_OK(transaction.set_alarm(at(n * 7 % 5)));
            return transaction.put(1, "n", as_bytes(std::to_string(n + 1)));
          });
          if (!done.ok()) ++failures;
        }
        if (!this->storage_->alarms_until(at(2), 3).ok()) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < kObjects; ++i) {
      EXPECT_EQ(this->get(this->open({"t" + std::to_string(t), std::to_string(i)}), "n"),
                std::to_string(kSteps));
    }
  }
}

TYPED_TEST(StorageContract, OwnersThatTakeAnObjectFromEachOtherLoseNoCommit) {
  constexpr int kThreads = 4;
  constexpr int kSteps = 50;
  std::atomic<int> committed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int step = 0; step < kSteps; ++step) {
        auto object = *this->storage_->open({"a", "shared"}, {});
        // In two transactions on purpose: only the generation keeps the others from writing in
        // between.
        int n = 0;
        const auto read = object->read([&](Reader& reader) -> Result<void> {
          SW_TRY(const auto before, reader.get(1, "n"));
          n = before ? std::stoi(std::string(as_text(*before))) : 0;
          return {};
        });
        if (!read.ok()) continue;
        if (TestFixture::put(*object, "n", std::to_string(n + 1)).ok()) ++committed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(this->get(this->open({"a", "shared"}), "n"), std::to_string(committed));
}

TYPED_TEST(StorageContract, AgreesWithAMapOverRandomSteps) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::map<std::string, std::string> model;
  ObjectStorage* object = &this->open({"a", "1"});
  for (int step = 0; step < 400; ++step) {
    if (random() % 40 == 0) {
      this->restart();
      object = &this->open({"a", "1"});
    }
    std::map<std::string, std::string> next = model;
    const bool commit = random() % 5 != 0;
    const auto done = object->transact([&](Transaction& transaction) -> Result<void> {
      for (unsigned i = random() % 4; i > 0; --i) {
        const std::string key = std::to_string(random() % 30);
        const std::string value =
            repeated(static_cast<char>('a' + random() % 26), random() % 3 * (random() % 4000));
        if (random() % 3 != 0) {
          SW_CHECK_OK(transaction.put(1, key, as_bytes(value)));
          next[key] = value;
        } else {
          SW_CHECK_OK(transaction.erase(1, key));
          next.erase(key);
        }
      }
      return commit ? Result<void>() : Error{ErrorCode::kInternal, "no", 0};
    });
    ASSERT_EQ(done.ok(), commit);
    if (commit) model = next;
    std::map<std::string, std::string> stored;
    ASSERT_TRUE(object
                    ->read([&](Reader& reader) {
                      return reader.scan({1, "", ""}, Order::kAscending,
                                         [&](std::string_view key, BytesView value) {
                                           stored.emplace(key, as_text(value));
                                           return Result<Scan>(Scan::kContinue);
                                         });
                    })
                    .ok());
    ASSERT_EQ(stored, model) << "step " << step;
  }
}

}  // namespace
}  // namespace sw::storage
