// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/file_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "sandbox/file_store.h"
#include "sandbox_workers/base/sha256.h"
#include "sandbox_workers/wasi/file_system.h"
#include "storage/memory/memory_storage.h"

namespace sw::sandbox {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using wasi::Errno;

struct FileLogTest : ::testing::Test {
  storage::MemoryDisk disk{storage::Bodies::kTwice};
  std::unique_ptr<storage::Storage> storage = storage::open_memory_storage(disk);
  std::unique_ptr<storage::ObjectStorage> object =
      storage->open({.class_name = "sandbox", .id = "test"}, {}).value();
  wasi::SystemClocks clocks;
  wasi::TreeLimits limits;
  FileHistoryLimits history;
  FileStore store = load().value();

  Result<FileStore> load() {
    return FileStore::load(*object, limits, clocks.realtime_ns(), history);
  }
  void reload() { store = load().value(); }
  wasi::FileSystem files() {
    wasi::FileSystem result(wasi::standard_layout().build(), clocks);
    result.mount(wasi::kWorkspaceMount, store.tree());
    return result;
  }
  void write(const std::string& name, std::string_view text) {
    ASSERT_EQ(files().write_file("/workspace/" + name, as_bytes(text)), Errno::kSuccess);
  }
  void remove(const std::string& name) {
    ASSERT_EQ(files().remove("/workspace/" + name), Errno::kSuccess);
  }
  void save(const std::optional<ContextStep>& step = {}) {
    FileStore::Changes changes = store.changes();
    if (step) store.end_step(changes, *step);
    ASSERT_TRUE(object->transact([&](storage::Transaction& t) { return changes.write(t); }).ok());
    store.written(std::move(changes));
  }
  /// The step of the context c that left a file with its number.
  void step(std::uint64_t number) {
    write("f", std::to_string(number));
    save(ContextStep{"c", number});
  }
  std::optional<std::uint64_t> after(std::uint64_t step, const std::string& context = "c") {
    return store.log().state_after({context, step});
  }
  std::uint64_t newest() {
    const auto& rows = store.log().rows();
    return rows.empty() ? 0 : rows.rbegin()->first;
  }
  Result<VersionFiles> put_back(std::uint64_t state) {
    return store.put_back(*object, state, clocks.realtime_ns());
  }
  std::map<std::string, std::string> tree() {
    std::map<std::string, std::string> found;
    const wasi::TreeState state = wasi::TreeState::of(*store.tree());
    for (const auto& [path, entry] : state.entries()) {
      found[path] = std::to_string(static_cast<int>(entry.type)) + entry.target +
                    std::string(as_text(entry.bytes.bytes));
    }
    return found;
  }
  std::set<std::string> keys(storage::TableId table) {
    std::set<std::string> found;
    EXPECT_TRUE(object
                    ->read([&](storage::Reader& reader) {
                      found.clear();
                      return reader.scan_keys(
                          {.table = table, .from = {}, .to = {}}, storage::Order::kAscending,
                          [&](std::string_view key, std::size_t) -> Result<storage::Scan> {
                            found.emplace(key);
                            return storage::Scan::kContinue;
                          });
                    })
                    .ok());
    return found;
  }
  /// What files and the log need.
  std::set<std::string> needed() {
    std::set<std::string> found;
    for (const auto& [number, row] : store.log().rows()) {
      if (!row.before) continue;
      for (const auto& [path, entry] : *row.before)
        if (entry && !entry->digest.empty()) found.insert(entry->digest);
    }
    const wasi::TreeState state = wasi::TreeState::of(*store.tree());
    for (const auto& [path, entry] : state.entries()) {
      if (entry.type == wasi::FileType::kRegularFile) found.insert(sha256_hex(entry.bytes.bytes));
    }
    return found;
  }
  void spoil_contents() {
    for (const std::string& digest : keys(0x21)) {
      ASSERT_TRUE(object
                      ->transact([&](storage::Transaction& t) {
                        return t.put(0x21, digest, as_bytes("spoilt"));
                      })
                      .ok());
    }
  }
};

TEST_F(FileLogTest, FilesFoldersAndLinksComeBackAsTheyWere) {
  auto fs = files();
  write("changed", "one");
  write("removed", "gone");
  write("kept", "same");
  ASSERT_EQ(fs.make_directories("/workspace/d/e"), Errno::kSuccess);
  write("d/e/below", "text");
  ASSERT_EQ(fs.symlink("kept", "/workspace/link"), Errno::kSuccess);
  save(ContextStep{"c", 1});
  const auto then = tree();
  const auto modified = fs.stat("/workspace/changed")->times.modified;
  write("changed", "two");
  remove("removed");
  ASSERT_EQ(fs.rename("/workspace/d", "/workspace/moved"), Errno::kSuccess);
  remove("link");
  ASSERT_EQ(fs.make_directories("/workspace/link/in"), Errno::kSuccess);
  write("d", "a file where a folder was");
  save(ContextStep{"c", 2});
  write("changed", "three");
  save();
  const auto now = tree();
  reload();
  const VersionFiles differ = store.differences_to(*after(1));
  EXPECT_THAT(differ.differ, ElementsAre("changed", "d", "d/e", "d/e/below", "link", "link/in",
                                         "moved", "moved/e", "moved/e/below", "removed"));
  EXPECT_EQ(differ.differ_count, 10U);
  EXPECT_EQ(put_back(*after(1))->restored, 10U);
  EXPECT_EQ(tree(), then);
  EXPECT_EQ(files().stat("/workspace/changed")->times.modified, modified);
  save();
  reload();
  EXPECT_EQ(tree(), then);
  EXPECT_THAT(store.differences_to(*after(1)).differ, IsEmpty());
  ASSERT_TRUE(put_back(3).ok()) << "that they were put back can be undone";
  EXPECT_EQ(tree(), now);
}

TEST_F(FileLogTest, AfterAnythingEachStateThatIsKeptComesBack) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  history = {.bytes_max = 20'000, .changes_max = 20};
  reload();
  std::vector<std::map<std::string, std::string>> states{tree()};
  const auto path = [&] {
    const std::string name = "/workspace/" + std::to_string(random() % 5);
    return random() % 3 == 0 ? name : name + "/" + std::to_string(random() % 3);
  };
  for (int round = 0; round < 150; ++round) {
    auto fs = files();
    for (int i = 0; i < 4; ++i) {
      switch (random() % 6) {
        case 0: (void)fs.remove(path()); break;
        case 1: (void)fs.rename(path(), path()); break;
        case 2: (void)fs.make_directories(path()); break;
        case 3: (void)fs.symlink(path(), path()); break;
        default:
          (void)fs.write_file(path(), as_bytes(std::string(random() % 3000,
                                                           static_cast<char>('a' + random() % 4))));
      }
    }
    save(ContextStep{"c", static_cast<std::uint64_t>(round + 1)});
    if (newest() == states.size()) states.push_back(tree());
    ASSERT_EQ(states.size(), newest() + 1);
    ASSERT_EQ(keys(0x21), needed());
    if (random() % 5 == 0) reload();
    if (random() % 4 != 0) continue;
    const auto state = after(1 + random() % static_cast<unsigned>(round + 1));
    if (!state) continue;
    ASSERT_TRUE(put_back(*state).ok());
    ASSERT_EQ(tree(), states[*state]);
    save();
    if (newest() == states.size()) states.push_back(tree());
  }
  EXPECT_THAT(store.log().rows(), SizeIs(testing::Le(20U)));
}

TEST_F(FileLogTest, TheOldestChangesGoFirstWithWhatOnlyTheyKept) {
  history.changes_max = 3;
  reload();
  for (std::uint64_t i = 1; i <= 6; ++i) step(i);
  EXPECT_THAT(keys(0x22), SizeIs(3));
  EXPECT_THAT(keys(0x23), SizeIs(4)) << "a step for each state that can be put back";
  EXPECT_THAT(keys(0x21), SizeIs(4)) << "of three changes, and of the file";
  EXPECT_FALSE(after(2));
  EXPECT_EQ(store.log().first_step("c"), 3U);
  ASSERT_TRUE(put_back(*after(3)).ok());
  EXPECT_EQ(tree()["f"], "43");
}

TEST_F(FileLogTest, WhatItKeepsIsBoundedInBytes) {
  history.bytes_max = 10'000;
  reload();
  for (int i = 1; i <= 8; ++i) {
    write("f", std::string(3000, static_cast<char>('0' + i)));
    save(ContextStep{"c", static_cast<std::uint64_t>(i)});
  }
  EXPECT_THAT(keys(0x21), SizeIs(4)) << "three that were replaced, and the file's";
  EXPECT_EQ(store.log().first_step("c"), 5U);
  reload();
  write("f", "9");
  save(ContextStep{"c", 9});
  EXPECT_EQ(store.log().first_step("c"), 6U) << "it counts the same when it is loaded again";
}

TEST_F(FileLogTest, AChangeThatIsMoreThanItMayKeepIsWhereItBegins) {
  history.bytes_max = 1000;
  reload();
  write("f", std::string(2000, 'x'));
  save(ContextStep{"c", 1});
  write("f", "small");
  save(ContextStep{"c", 2});
  EXPECT_THAT(keys(0x21), SizeIs(1));
  EXPECT_FALSE(after(1));
  EXPECT_EQ(after(2), 2U);
  write("f", "smaller");
  save(ContextStep{"c", 3});
  reload();
  EXPECT_FALSE(after(1));
  ASSERT_TRUE(put_back(*after(2)).ok());
  EXPECT_EQ(tree()["f"], "4small");
}

TEST_F(FileLogTest, AStepThatChangesNothingTakesNoRow) {
  step(1);
  for (int i = 2; i <= 9; ++i) save(ContextStep{"c", static_cast<std::uint64_t>(i)});
  EXPECT_THAT(keys(0x23), SizeIs(1));
  write("f", "from outside");
  save();
  save(ContextStep{"c", 10});
  reload();
  EXPECT_EQ(after(9), 1U);
  EXPECT_EQ(after(10), 2U);
  EXPECT_EQ(after(0), std::nullopt);
  EXPECT_EQ(after(9, "other"), std::nullopt);
}

TEST_F(FileLogTest, AForkHasTheStepsUpToItsOwnAndAContextThatIsGoneHasNone) {
  for (std::uint64_t i = 1; i <= 3; ++i) step(i);
  FileStore::Changes changes = store.changes();
  store.inherit_steps(changes, {"c", 2}, "fork");
  ASSERT_TRUE(object->transact([&](storage::Transaction& t) { return changes.write(t); }).ok());
  store.written(std::move(changes));
  ASSERT_TRUE(
      object->transact([](storage::Transaction& t) { return FileLog::erase_steps(t, "c"); }).ok());
  store.forget_steps("c");
  for (int times = 0; times < 2; ++times, reload()) {
    EXPECT_EQ(after(1, "fork"), 1U);
    EXPECT_EQ(after(2, "fork"), 2U);
    EXPECT_EQ(after(7, "fork"), 2U);
    EXPECT_EQ(after(2), std::nullopt);
  }
}

TEST_F(FileLogTest, ARunOfANumberThatIsKnownReplacesIt) {
  for (std::uint64_t i = 1; i <= 3; ++i) step(i);
  write("f", "again");
  save(ContextStep{"c", 2});
  reload();
  EXPECT_EQ(after(1), 1U);
  EXPECT_EQ(after(2), 4U);
  EXPECT_EQ(after(3), 4U);
}

TEST_F(FileLogTest, DifferencesAreToldWithoutReadingAndADamagedContentIsNamed) {
  write("a", "one");
  for (int i = 0; i < 150; ++i) write("many" + std::to_string(i), "text");
  save(ContextStep{"c", 1});
  write("a", "two");
  for (int i = 0; i < 150; ++i) remove("many" + std::to_string(i));
  save();
  spoil_contents();
  const VersionFiles files = store.differences_to(*after(1));
  EXPECT_TRUE(files.known);
  EXPECT_THAT(files.differ, SizeIs(kDifferingFilesMax));
  EXPECT_EQ(files.differ_count, 151U);
  EXPECT_THAT(put_back(*after(1)).error().message, HasSubstr("/workspace/a is damaged"));
}

TEST_F(FileLogTest, WhatIsMoreThanThereMayBeDoesNotComeBack) {
  limits.tree_bytes_max = 1000;
  reload();
  write("a", std::string(600, 'a'));
  write("b", std::string(100, 'b'));
  save(ContextStep{"c", 1});
  write("a", std::string(100, 'a'));
  write("b", std::string(600, 'b'));
  save(ContextStep{"c", 2});
  EXPECT_TRUE(put_back(*after(1)).ok()) << "it is too much only in between";
  save();
  remove("a");
  save();
  limits.tree_bytes_max = 500;
  reload();
  EXPECT_EQ(put_back(*after(1)).error().code, ErrorCode::kNoSpace);
}

TEST_F(FileLogTest, ADamagedLogIsCorrupt) {
  for (std::uint64_t i = 1; i <= 3; ++i) step(i);
  // What loading says with a row like that, which is then taken away.
  const auto broken = [&](storage::TableId table, const std::string& key, std::string_view value) {
    std::optional<Bytes> old;
    EXPECT_TRUE(object
                    ->transact([&](storage::Transaction& t) -> Result<void> {
                      SW_TRY(old, t.get(table, key));
                      return t.put(table, key, as_bytes(value));
                    })
                    .ok());
    const auto loaded = load();
    EXPECT_TRUE(object
                    ->transact([&](storage::Transaction& t) {
                      return old ? t.put(table, key, *old) : t.erase(table, key);
                    })
                    .ok());
    return loaded.ok() ? std::string("nothing") : loaded.error().message;
  };
  EXPECT_THAT(broken(0x23, "c", "12345678"), HasSubstr("a step is invalid"));
  EXPECT_THAT(broken(0x22, "x", "{}"), HasSubstr("a row has no number"));
  EXPECT_THAT(broken(0x22, storage::ordered_key(9), "{}"), HasSubstr("a row is missing"));
  EXPECT_THAT(broken(0x22, storage::ordered_key(3), R"({"before":{"../x":null}})"),
              HasSubstr("invalid path"));
  EXPECT_THAT(broken(0x22, storage::ordered_key(3), R"({"before":{"x":{"type":9,"modified":0}}})"),
              HasSubstr("unknown type"));
  EXPECT_TRUE(load().ok());
}

}  // namespace
}  // namespace sw::sandbox
