// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "base/persistent_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace sw {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

using Map = PersistentMap<int>;
using Model = std::map<std::string, int>;

Model model_of(const Map& map) {
  Model model;
  for (const auto& [key, value] : map) model.emplace(key, value);
  return model;
}

std::vector<std::string> differences(const Map& before, const Map& after) {
  std::vector<std::string> told;
  Map::differences(before, after, [&](const std::string& key, const int* old, const int* fresh) {
    told.push_back(key + (old ? " " + std::to_string(*old) : " -") +
                   (fresh ? " " + std::to_string(*fresh) : " -"));
  });
  return told;
}

TEST(PersistentMap, ACopyStaysAsItIs) {
  Map map;
  EXPECT_TRUE(map.empty());
  map.set("a", 1);
  map.set("b", 2);
  const Map copy = map;
  map.set("a", 3);
  map.erase("b");
  map.erase("unknown");
  map.set("c", 4);
  EXPECT_THAT(model_of(copy), ElementsAre(Pair("a", 1), Pair("b", 2)));
  EXPECT_THAT(model_of(map), ElementsAre(Pair("a", 3), Pair("c", 4)));
  EXPECT_EQ(*map.find("c"), 4);
  EXPECT_EQ(map.find("b"), nullptr);
  EXPECT_EQ(map.size(), 2U);
}

TEST(PersistentMap, IsMadeFromItemsInAnyOrder) {
  EXPECT_THAT(model_of(Map({{"b", 1}, {"a", 2}, {"b", 3}})),
              ElementsAre(Pair("a", 2), Pair("b", 1)));
  EXPECT_THAT(model_of(Map(std::vector<std::pair<std::string, int>>{})), IsEmpty());
}

TEST(PersistentMap, TellsWhatDiffers) {
  const Map before({{"a", 1}, {"b", 2}, {"c", 3}});
  Map after = before;
  EXPECT_THAT(differences(before, after), IsEmpty());
  after.erase("a");
  after.set("b", 5);
  after.set("d", 4);
  EXPECT_THAT(differences(before, after), ElementsAre("a 1 -", "b 2 5", "d - 4"));
  EXPECT_THAT(differences({}, before), ElementsAre("a - 1", "b - 2", "c - 3"));
  EXPECT_THAT(differences(before, {}), ElementsAre("a 1 -", "b 2 -", "c 3 -"));
}

TEST(PersistentMap, FindsFewDifferencesOfLargeMapsWithoutLookingAtTheRest) {
  std::vector<std::pair<std::string, int>> items;
  for (int i = 0; i < 100'000; ++i) items.emplace_back(std::to_string(1'000'000 + i), i);
  const Map before(std::move(items));
  Map after = before;
  after.set("1050000", 1);
  after.erase("1000000");
  after.set("2", 1);
  EXPECT_THAT(differences(before, after), ElementsAre("1000000 0 -", "1050000 50000 1", "2 - 1"));
  // CPU time: what else the machine does is no cost of ours
  const std::clock_t start = std::clock();
  std::size_t seen = 0;
  for (const auto& item : before) seen += item.first.size();
  const std::clock_t a_pass = std::clock() - start;
  EXPECT_EQ(seen, 700'000U);
  const std::clock_t start_of_differences = std::clock();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(differences(before, after).size(), 3U);
  EXPECT_LT(std::clock() - start_of_differences, a_pass) << "ten times";
}

TEST(PersistentMap, IsLikeAMapAfterRandomChanges) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  Map map;
  Model model;
  Map old;
  Model old_model;
  for (int step = 0; step < 20'000; ++step) {
    const std::string key = std::to_string(random() % 500);
    if (random() % 3 == 0) {
      map.erase(key);
      model.erase(key);
    } else {
      map.set(key, step);
      model[key] = step;
    }
    if (step % 97 != 0) continue;
    ASSERT_EQ(model_of(map), model);
    ASSERT_EQ(map.size(), model.size());
    const auto at = map.lower_bound(key);
    const auto expected = model.lower_bound(key);
    ASSERT_EQ(at == Map::end(), expected == model.end());
    if (expected != model.end()) {
      ASSERT_EQ(at->first, expected->first);
    }
    Model replayed = old_model;
    Map::differences(old, map, [&](const std::string& name, const int* before, const int* after) {
      ASSERT_EQ(before != nullptr, old_model.contains(name));
      if (before) {
        ASSERT_EQ(*before, old_model.at(name));
      }
      if (after) replayed[name] = *after;
      else replayed.erase(name);
    });
    ASSERT_EQ(replayed, model);
    old = map;
    old_model = model;
  }
}

}  // namespace
}  // namespace sw
