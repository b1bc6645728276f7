// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What every implementation of Storage keeps to: objects with their alarms, owners and schemas.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "storage/contract_fixture.h"
#include "storage/storage.h"

namespace sw::storage {
namespace {

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

}  // namespace
}  // namespace sw::storage
