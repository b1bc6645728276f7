// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What every implementation of Storage keeps to: changes of several objects, and copies of whole ones.

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "storage/contract_fixture.h"
#include "storage/storage.h"

namespace sw::storage {
namespace {

TransactionBody putting(std::string key, std::string value) {
  return
      [key, value](Transaction& transaction) { return transaction.put(1, key, as_bytes(value)); };
}

TYPED_TEST(StorageContract, SeveralObjectsChangeInOneTransaction) {
  ObjectStorage& first = this->open({"a", "1"});
  ObjectStorage& second = this->open({"b", "2"});
  ASSERT_TRUE(first.is_beside(second));
  ASSERT_TRUE(first.transact(putting("k", "one"), {.also = {{second, putting("k", "two")}}}).ok());
  const auto failed = first.transact(
      putting("k", "three"), {.also = {{second, [](Transaction& transaction) -> Result<void> {
                                          SW_CHECK_OK(transaction.put(1, "k", as_bytes("four")));
                                          return Error{ErrorCode::kLimitExceeded, "no", 0};
                                        }}}});
  EXPECT_EQ(failed.error().message, "no");
  this->restart();
  EXPECT_EQ(this->get(this->open({"a", "1"}), "k"), "one");
  EXPECT_EQ(this->get(this->open({"b", "2"}), "k"), "two");
}

TYPED_TEST(StorageContract, AJointTransactionOfAFormerOwnerChangesNothing) {
  ObjectStorage& first = this->open({"a", "1"});
  ObjectStorage& former = this->open({"b", "2"});
  this->open({"b", "2"});
  EXPECT_EQ(first.transact(putting("k", "x"), {.also = {{former, putting("k", "x")}}}).error().code,
            ErrorCode::kConflict);
  EXPECT_EQ(this->get(first, "k"), "(nothing)");
}

TYPED_TEST(StorageContract, AChangeIsSeenBeforeItIsOnDisk) {
  ObjectStorage& object = this->open({"a", "1"});
  std::vector<std::unique_ptr<PendingCommit>> pending(10);
  for (std::size_t i = 0; i < pending.size(); ++i) {
    ASSERT_TRUE(object.transact(putting("k", std::to_string(i)), {.pending = &pending[i]}).ok());
    EXPECT_EQ(this->get(object, "k"), std::to_string(i));
  }
  for (const auto& commit : pending) EXPECT_TRUE(commit->wait().ok());
  this->restart();
  EXPECT_EQ(this->get(this->open({"a", "1"}), "k"), "9");
}

TYPED_TEST(StorageContract, RelaxedChangesAreThereAfterAnOrderlyEnd) {
  ObjectStorage& object = this->open({"a", "1"});
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(
        object.transact(putting("k", std::to_string(i)), {.durability = Durability::kRelaxed})
            .ok());
  }
  EXPECT_FALSE(object.may_miss_changes());
  this->restart();
  EXPECT_EQ(this->get(this->open({"a", "1"}), "k"), "9");
  EXPECT_FALSE(this->open({"a", "1"}).may_miss_changes());
}

TYPED_TEST(StorageContract, ACopyIsAnObjectOfItsOwn) {
  const Schema schema{.steps = {[](Transaction&) { return Result<void>(); }}};
  ObjectStorage& original = this->open({"a", "1"}, schema);
  ASSERT_TRUE(this->put(original, "shared", "old").ok());
  ASSERT_TRUE(this->put(original, "erased", "old").ok());
  ASSERT_TRUE(this->set_alarm(original, at(5)).ok());
  ASSERT_TRUE(
      this->storage_
          ->change(
              {.removed = {},
               .copies = {{.from = {"a", "1"}, .to = {"a", "2"}, .body = putting("own", "copy")}}})
          .ok());
  ObjectStorage& copy = this->open({"a", "2"}, schema);
  EXPECT_EQ(this->get(copy, "shared"), "old");
  EXPECT_EQ(this->get(copy, "own"), "copy");
  EXPECT_EQ(this->get(original, "own"), "(nothing)");
  ASSERT_TRUE(this->put(original, "shared", "new").ok());
  ASSERT_TRUE(copy.transact([](Transaction& t) { return t.erase(1, "erased"); }).ok());
  EXPECT_EQ(this->due(Time::max()), "1@5 ");
  this->restart();
  EXPECT_EQ(this->get(this->open({"a", "1"}, schema), "shared"), "new");
  EXPECT_EQ(this->get(this->open({"a", "1"}, schema), "erased"), "old");
  EXPECT_EQ(this->get(this->open({"a", "2"}, schema), "shared"), "old");
  EXPECT_EQ(this->keys(this->open({"a", "2"}, schema), {1, "", ""}), "own shared ");
  EXPECT_EQ(this->listed("a"), "1 2 ");
}

TYPED_TEST(StorageContract, CopiesOutliveTheirOriginal) {
  ASSERT_TRUE(this->put(this->open({"a", "1"}), "k", "v").ok());
  ASSERT_TRUE(this->storage_->change({.copies = {{.from = {"a", "1"}, .to = {"a", "2"}}}}).ok());
  ASSERT_TRUE(this->storage_->remove({"a", "1"}).ok());
  ASSERT_TRUE(this->storage_->change({.copies = {{.from = {"a", "2"}, .to = {"a", "3"}}}}).ok());
  this->restart();
  ASSERT_TRUE(this->storage_->remove({"a", "2"}).ok());
  EXPECT_EQ(this->get(this->open({"a", "3"}), "k"), "v");
  EXPECT_EQ(this->listed("a"), "3 ");
}

TYPED_TEST(StorageContract, ACopyTakesThePlaceOfWhatWasThere) {
  ObjectStorage& former = this->open({"a", "target"});
  ASSERT_TRUE(this->put(former, "old", "x").ok());
  ASSERT_TRUE(this->put(this->open({"a", "source"}), "new", "y").ok());
  ASSERT_TRUE(this->put(this->open({"a", "gone"}), "k", "z").ok());
  ASSERT_TRUE(this->storage_
                  ->change({.removed = {{"a", "gone"}, {"a", "never there"}},
                            .copies = {{.from = {"a", "source"}, .to = {"a", "target"}}}})
                  .ok());
  EXPECT_TRUE(former.lost());
  EXPECT_EQ(this->put(former, "late", "x").error().code, ErrorCode::kConflict);
  EXPECT_EQ(this->keys(this->open({"a", "target"}), {1, "", ""}), "new ");
  EXPECT_EQ(this->listed("a"), "source target ");
}

TYPED_TEST(StorageContract, AChangeOfObjectsHappensAsAWholeOrNotAtAll) {
  ASSERT_TRUE(this->put(this->open({"a", "1"}), "k", "v").ok());
  const auto failed = this->storage_->change(
      {.removed = {{"a", "1"}}, .copies = {{.from = {"a", "none"}, .to = {"a", "2"}}}});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(failed.error().message, "no object a/none");
  EXPECT_EQ(this->get(this->open({"a", "1"}), "k"), "v");
  EXPECT_EQ(this->listed("a"), "1 ");
}

/// Objects as maps, beside a storage in which the same is done.
TYPED_TEST(StorageContract, RandomCopiesAndChangesAgreeWithAModel) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::map<std::string, std::map<std::string, std::string>> model;
  const auto name = [&] { return std::string(1, static_cast<char>('a' + random() % 4)); };
  for (int step = 0; step < 150; ++step) {
    const std::string id = name();
    const std::string other = name();
    const std::string key = name();
    switch (random() % 6) {
      case 0:
        if (!model.contains(id) || id == other) break;
        ASSERT_TRUE(
            this->storage_->change({.copies = {{.from = {"o", id}, .to = {"o", other}}}}).ok());
        model[other] = model[id];
        break;
      case 1:
        ASSERT_TRUE(this->storage_->change({.removed = {{"o", id}}}).ok());
        model.erase(id);
        break;
      case 2:
        ASSERT_TRUE(
            this->open({"o", id}).transact([&](Transaction& t) { return t.erase(1, key); }).ok());
        model[id].erase(key);
        break;
      case 3: this->restart(); break;
      default:
        ASSERT_TRUE(this->put(this->open({"o", id}), key, std::to_string(step)).ok());
        model[id][key] = std::to_string(step);
    }
    const std::string look = name();
    std::string expected;
    for (const auto& [row, value] : model[look]) expected += row + " ";
    ObjectStorage& object = this->open({"o", look});
    EXPECT_EQ(this->keys(object, {1, "", ""}), expected);
    for (const auto& [row, value] : model[look]) EXPECT_EQ(this->get(object, row), value);
    if (model[look].empty()) model.erase(look);
    if (testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace sw::storage
