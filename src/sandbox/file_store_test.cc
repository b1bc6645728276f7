// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/file_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "sandbox_workers/base/sha256.h"
#include "sandbox_workers/wasi/file_system.h"
#include "storage/memory/memory_storage.h"

namespace sw::sandbox {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const storage::ObjectName kName{.class_name = "sandbox", .id = "test"};

struct FileStoreTest : ::testing::Test {
  storage::MemoryDisk disk{storage::Bodies::kTwice};
  std::unique_ptr<storage::Storage> storage = storage::open_memory_storage(disk);
  std::unique_ptr<storage::ObjectStorage> object = storage->open(kName, {}).value();
  wasi::SystemClocks clocks;
  FileHistoryLimits no_log{.bytes_max = 0};  // file_log_test.cc has what it keeps
  FileStore store = FileStore::load(*object, {}, clocks.realtime_ns(), no_log).value();

  wasi::FileSystem files() {
    wasi::FileSystem result(wasi::standard_layout().build(), clocks);
    result.mount(wasi::kWorkspaceMount, store.tree());
    return result;
  }
  void save() {
    FileStore::Changes changes = store.changes();
    ASSERT_TRUE(object->transact([&](storage::Transaction& t) { return changes.write(t); }).ok());
    store.written(std::move(changes));
  }
  void reload() { store = FileStore::load(*object, {}, clocks.realtime_ns(), no_log).value(); }
  std::size_t rows(storage::TableId table) {
    std::size_t count = 0;
    EXPECT_TRUE(object
                    ->read([&](storage::Reader& reader) {
                      count = 0;
                      return reader.scan_keys(
                          {.table = table, .from = {}, .to = {}}, storage::Order::kAscending,
                          [&](std::string_view, std::size_t) -> Result<storage::Scan> {
                            ++count;
                            return storage::Scan::kContinue;
                          });
                    })
                    .ok());
    return count;
  }
};

TEST_F(FileStoreTest, FilesFoldersAndLinksSurvive) {
  auto fs = files();
  ASSERT_EQ(fs.make_directories("/workspace/d/empty"), wasi::Errno::kSuccess);
  ASSERT_EQ(fs.write_file("/workspace/d/a", as_bytes("one")), wasi::Errno::kSuccess);
  ASSERT_EQ(fs.symlink("d/a", "/workspace/link"), wasi::Errno::kSuccess);
  const auto before = fs.stat("/workspace/d/a")->times.modified;
  save();
  reload();
  auto again = files();
  EXPECT_EQ(as_text(again.read_file("/workspace/link")->bytes), "one");
  EXPECT_TRUE(again.exists("/workspace/d/empty"));
  EXPECT_EQ(again.stat("/workspace/d/a")->times.modified, before);
  EXPECT_THAT(store.changes().entries(), IsEmpty());
}

TEST_F(FileStoreTest, EqualContentsAreStoredOnceAndUnusedOnesGo) {
  auto fs = files();
  ASSERT_EQ(fs.write_file("/workspace/a", as_bytes("same")), wasi::Errno::kSuccess);
  ASSERT_EQ(fs.write_file("/workspace/b", as_bytes("same")), wasi::Errno::kSuccess);
  save();
  EXPECT_EQ(rows(0x20), 2u);
  EXPECT_EQ(rows(0x21), 1u);
  ASSERT_EQ(fs.rename("/workspace/a", "/workspace/c"), wasi::Errno::kSuccess);
  save();
  EXPECT_EQ(rows(0x21), 1u);
  ASSERT_EQ(fs.write_file("/workspace/b", as_bytes("other")), wasi::Errno::kSuccess);
  ASSERT_EQ(fs.remove("/workspace/c"), wasi::Errno::kSuccess);
  save();
  EXPECT_EQ(rows(0x21), 1u);
  reload();
  EXPECT_EQ(as_text(files().read_file("/workspace/b")->bytes), "other");
  EXPECT_FALSE(files().exists("/workspace/c"));
}

TEST_F(FileStoreTest, TellsEachChangedEntryBeforeAndAfter) {
  auto fs = files();
  ASSERT_EQ(fs.write_file("/workspace/a", as_bytes("one")), wasi::Errno::kSuccess);
  ASSERT_EQ(fs.write_file("/workspace/b", as_bytes("same")), wasi::Errno::kSuccess);
  ASSERT_EQ(fs.write_file("/workspace/c", as_bytes("same")), wasi::Errno::kSuccess);
  save();
  ASSERT_EQ(fs.write_file("/workspace/a", as_bytes("two")), wasi::Errno::kSuccess);
  ASSERT_EQ(fs.remove("/workspace/b"), wasi::Errno::kSuccess);
  ASSERT_EQ(fs.symlink("a", "/workspace/new"), wasi::Errno::kSuccess);
  const FileStore::Changes changes = store.changes();
  ASSERT_EQ(changes.entries().size(), 3U) << "c is as it was";
  const FileStore::Change& a = changes.entries()[0];
  EXPECT_EQ(a.path, "a");
  EXPECT_EQ(a.before->digest, sha256_hex(as_bytes("one")));
  EXPECT_EQ(a.after->digest, sha256_hex(as_bytes("two")));
  EXPECT_EQ(changes.entries()[1].before->digest, sha256_hex(as_bytes("same")));
  EXPECT_FALSE(changes.entries()[1].after);
  EXPECT_FALSE(changes.entries()[2].before);
  EXPECT_EQ(changes.entries()[2].after->target, "a");
}

TEST_F(FileStoreTest, AfterAnythingItHasTheContentsThatFilesHave) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  auto fs = files();
  const auto path = [&] { return "/workspace/" + std::to_string(random() % 8); };
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 5; ++i) {
      switch (random() % 4) {
        case 0: (void)fs.remove(path()); break;
        case 1: (void)fs.rename(path(), path()); break;
        default: (void)fs.write_file(path(), as_bytes(std::to_string(random() % 6)));
      }
    }
    save();
    std::set<std::string> contents;
    const wasi::TreeState state = wasi::TreeState::of(*store.tree());
    for (const auto& [name, entry] : state.entries())
      contents.insert(std::string(as_text(entry.bytes.bytes)));
    ASSERT_EQ(rows(0x20), state.entries().size());
    ASSERT_EQ(rows(0x21), contents.size());
  }
  reload();
  EXPECT_THAT(store.changes().entries(), IsEmpty());
}

TEST_F(FileStoreTest, ADamagedContentIsNamed) {
  ASSERT_EQ(files().write_file("/workspace/a", as_bytes("good")), wasi::Errno::kSuccess);
  save();
  std::string digest;
  ASSERT_TRUE(object
                  ->transact([&](storage::Transaction& t) -> Result<void> {
                    SW_CHECK_OK(t.scan_keys(
                        {.table = 0x21, .from = {}, .to = {}}, storage::Order::kAscending,
                        [&](std::string_view key, std::size_t) -> Result<storage::Scan> {
                          digest = key;
                          return storage::Scan::kStop;
                        }));
                    return t.put(0x21, digest, as_bytes("bad!"));
                  })
                  .ok());
  const auto loaded = FileStore::load(*object, {}, clocks.realtime_ns());
  EXPECT_EQ(loaded.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(loaded.error().message, HasSubstr("/workspace/a is damaged"));
}

}  // namespace
}  // namespace sw::sandbox
