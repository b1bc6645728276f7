// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What every implementation of Storage keeps to: stacks of layers stay shallow, and nobody notices.

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "storage/contract_fixture.h"
#include "storage/merge_fixture.h"

namespace sw::storage {
namespace {

using Model = std::map<std::string, std::string>;
const ObjectName kMain{"o", "main"};
ObjectName numbered(int number) { return {"c", std::to_string(number)}; }

template <class T>
class StorageMerge : public StorageContract<T> {
 protected:
  Model rows_of(const ObjectName& name) {
    Model rows;
    auto object = *this->storage_->open(name, {});
    const auto read = object->read([&](Reader& reader) -> Result<void> {
      rows.clear();
      for (const TableId table : {TableId{1}, TableId{300}}) {
        SW_CHECK_OK(reader.scan(
            {table, "", ""}, Order::kAscending, [&](std::string_view key, BytesView value) {
              rows[std::to_string(table) + "/" + std::string(key)] = as_text(value);
              return Result<Scan>(Scan::kContinue);
            }));
      }
      return {};
    });
    EXPECT_TRUE(read.ok()) << read.error().message;
    return rows;
  }

  /// Changes a row or two of an object, and of what it should be.
  void change(ObjectStorage& object, Model& model, std::mt19937& random) {
    const std::string key = std::to_string(random() % 50);
    const TableId table = random() % 2 == 0 ? TableId{1} : TableId{300};
    const std::string name = std::to_string(table) + "/" + key;
    const std::string value(random() % 2000, static_cast<char>('a' + random() % 26));
    const bool erases = random() % 3 == 0;
    ASSERT_TRUE(object
                    .transact([&](Transaction& t) {
                      return erases ? t.erase(table, key) : t.put(table, key, as_bytes(value));
                    })
                    .ok());
    if (erases) model.erase(name);
    else model[name] = value;
  }
};

using MergeBackends = testing::Types<MemoryBackend, TwiceBackend, SqliteBackend>;
class MergeBackendNames {
 public:
  template <class T>
  static std::string GetName(int /*index*/) {
    return std::is_same_v<T, MemoryBackend>  ? "Memory"
           : std::is_same_v<T, TwiceBackend> ? "Twice"
                                             : "Sqlite";
  }
};
TYPED_TEST_SUITE(StorageMerge, MergeBackends, MergeBackendNames);

TYPED_TEST(StorageMerge, AThousandCheckpointsOfWhichFiveAreKept) {
  std::mt19937 random(1);
  ObjectStorage& object = this->open(kMain);
  const std::uint64_t generation = object.generation();
  Model model;
  std::map<int, Model> kept;
  for (int i = 0; i < 1000; ++i) {
    this->change(object, model, random);
    ASSERT_TRUE(
        this->storage_
            ->change({.removed = {numbered(i - 5)}, .copies = {{.from = kMain, .to = numbered(i)}}})
            .ok());
    kept[i] = model;
    kept.erase(i - 5);
  }
  this->change(object, model, random);
  // Whoever owns it has noticed nothing.
  EXPECT_FALSE(object.lost());
  EXPECT_EQ(object.generation(), generation);
  EXPECT_TRUE(becomes_shallow(*this->storage_, kMain)) << depth_of(*this->storage_, kMain);
  EXPECT_TRUE(eventually(
      [&] { return count_layers(*this->storage_) == count_owned_layers(*this->storage_); }));
  // Six objects, and what happens in the background decides how much they still share.
  EXPECT_TRUE(eventually([&] { return count_layers(*this->storage_) <= 6 * (kDeepStack + 1); }))
      << count_layers(*this->storage_);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(this->rows_of(kMain), model);
    for (const auto& [number, expected] : kept)
      EXPECT_EQ(this->rows_of(numbered(number)), expected);
    this->restart();
  }
}

TYPED_TEST(StorageMerge, HundredsOfCheckpointsThatAreAllKept) {
  constexpr int kCheckpoints = 300;
  std::mt19937 random(2);
  ObjectStorage& object = this->open(kMain);
  Model model;
  std::vector<Model> kept;
  for (int i = 0; i < kCheckpoints; ++i) {
    this->change(object, model, random);
    ASSERT_TRUE(checkpoint(*this->storage_, kMain, numbered(i)).ok());
    kept.push_back(model);
  }
  EXPECT_TRUE(becomes_shallow(*this->storage_, kMain)) << depth_of(*this->storage_, kMain);
  for (int i = 0; i < kCheckpoints; ++i) {
    EXPECT_TRUE(eventually([&] {
      return depth_of(*this->storage_, numbered(i)) <= kDeepStack + 1;
    })) << i;
  }
  for (const int i : {0, 1, 7, 8, 9, 100, 298, 299})
    EXPECT_EQ(this->rows_of(numbered(i)), kept[static_cast<std::size_t>(i)]) << i;
  // Any of them can be gone back to, and goes on from there.
  ASSERT_TRUE(checkpoint(*this->storage_, numbered(150), kMain).ok());
  EXPECT_EQ(this->rows_of(kMain), kept[150]);
  this->restart();
  EXPECT_EQ(this->rows_of(kMain), kept[150]);
  EXPECT_EQ(this->rows_of(numbered(299)), kept[299]);
}

TYPED_TEST(StorageMerge, ManyRowsAndLargeOnes) {
  ObjectStorage& object = this->open(kMain);
  std::size_t rows = 0;
  constexpr TableId kLast = UINT16_MAX;
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(object
                    .transact([&](Transaction& t) -> Result<void> {
                      for (int k = 0; k < 300; ++k) {
                        const std::string key = std::to_string(i) + "." + std::to_string(k);
                        SW_CHECK_OK(
                            t.put(kLast, key, as_bytes(std::string(std::size_t{900}, 'x'))));
                      }
                      SW_CHECK_OK(t.put(0, "", as_bytes(std::to_string(i))));
                      return t.put(9, std::to_string(i), Bytes(2'000'000, std::byte{7}));
                    })
                    .ok());
    rows += 300;
    ASSERT_TRUE(checkpoint(*this->storage_, kMain, {"c", "same"}).ok());
  }
  EXPECT_TRUE(becomes_shallow(*this->storage_, kMain));
  for (int round = 0; round < 2; ++round) {
    ObjectStorage& reopened = this->open(kMain);
    std::size_t found = 0;
    EXPECT_TRUE(reopened
                    .read([&](Reader& reader) {
                      found = 0;
                      return reader.scan({kLast, "", ""}, Order::kDescending,
                                         [&](std::string_view, BytesView value) {
                                           found += value.size() == 900 ? 1U : 0U;
                                           return Result<Scan>(Scan::kContinue);
                                         });
                    })
                    .ok());
    EXPECT_EQ(found, rows);
    EXPECT_EQ(this->get(reopened, "", 0), "11");
    EXPECT_EQ(this->get(reopened, "3", 9).size(), 2'000'000U);
    this->restart();
  }
}

/// Objects as maps, beside a storage in which the same is done.
TYPED_TEST(StorageMerge, RandomCopiesRemovalsAndChangesAgreeWithAModel) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::map<std::string, Model> model;
  const auto name = [&] { return std::string(1, static_cast<char>('a' + random() % 5)); };
  for (int step = 0; step < 300 && !testing::Test::HasFailure(); ++step) {
    const std::string id = name();
    const std::string other = name();
    const auto what = random() % 20;
    if (what == 0) {
      this->restart();
    } else if (what == 1) {
      ASSERT_TRUE(this->storage_->change({.removed = {{"o", id}}}).ok());
      model.erase(id);
    } else if (what < 11) {
      if (!model.contains(id) || id == other) continue;
      ASSERT_TRUE(checkpoint(*this->storage_, {"o", id}, {"o", other}).ok());
      model[other] = model[id];
    } else {
      model.try_emplace(id);
      // Nothing is there of an object of which nothing but erased rows was written.
      ASSERT_TRUE(this->put(this->open({"o", id}), "there", "").ok());
      model[id]["1/there"] = "";
      this->change(*this->objects_.back(), model[id], random);
    }
    const std::string look = name();
    EXPECT_EQ(this->rows_of({"o", look}), model[look]);
    if (model[look].empty()) model.erase(look);
  }
  EXPECT_TRUE(eventually(
      [&] { return count_layers(*this->storage_) == count_owned_layers(*this->storage_); }));
}

TYPED_TEST(StorageMerge, AnObjectThatIsRemovedOrReplacedMeanwhile) {
  std::mt19937 random(3);
  Model model;
  for (int i = 0; i < 100; ++i) {
    ObjectStorage& object = this->open(kMain);
    this->change(object, model, random);
    ASSERT_TRUE(checkpoint(*this->storage_, kMain, {"c", "kept"}).ok());
    if (i % 20 == 9) {
      ASSERT_TRUE(this->storage_->remove(kMain).ok());
      ASSERT_TRUE(checkpoint(*this->storage_, {"c", "kept"}, kMain).ok());
    } else if (i % 20 == 19) {
      ASSERT_TRUE(this->storage_->remove(kMain).ok());
      ASSERT_TRUE(this->storage_->remove({"c", "kept"}).ok());
      model.clear();
    }
    EXPECT_EQ(this->rows_of(kMain), model);
  }
}

}  // namespace
}  // namespace sw::storage
