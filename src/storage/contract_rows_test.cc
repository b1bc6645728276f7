// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What every implementation of Storage keeps to: rows and transactions.

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "storage/contract_fixture.h"
#include "storage/storage.h"

namespace sw::storage {
namespace {

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
