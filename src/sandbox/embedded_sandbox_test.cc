// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/embedded_sandbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "sandbox/file_store.h"
#include "sandbox_workers/engine/all_languages.h"
#include "sandbox_workers/engine/machine.h"
#include "sandbox_workers/wasi/file_system.h"
#include "sandbox_workers/wasm/guest_thread.h"
#include "storage/memory/memory_storage.h"

namespace sw::sandbox {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

const storage::ObjectName kName{.class_name = "sandbox", .id = "test"};

struct FileStoreTest : ::testing::Test {
  storage::MemoryDisk disk;
  std::unique_ptr<storage::Storage> storage = storage::open_memory_storage(disk);
  std::unique_ptr<storage::ObjectStorage> object = storage->open(kName, {}).value();
  wasi::SystemClocks clocks;
  FileStore store = FileStore::load(*object, {}, clocks.realtime_ns()).value();

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
  void reload() { store = FileStore::load(*object, {}, clocks.realtime_ns()).value(); }
  std::size_t rows(storage::TableId table) {
    std::size_t count = 0;
    EXPECT_TRUE(object
                    ->read([&](storage::Reader& reader) {
                      return reader.scan_keys({.table = table, .from = {}, .to = {}}, storage::Order::kAscending,
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
  EXPECT_TRUE(store.changes().empty());
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

TEST_F(FileStoreTest, ADamagedContentIsNamed) {
  ASSERT_EQ(files().write_file("/workspace/a", as_bytes("good")), wasi::Errno::kSuccess);
  save();
  std::string digest;
  ASSERT_TRUE(object
                  ->transact([&](storage::Transaction& t) -> Result<void> {
                    SW_CHECK_OK(t.scan_keys({.table = 0x21, .from = {}, .to = {}}, storage::Order::kAscending,
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

struct EmbeddedSandboxTest : ::testing::Test {
  std::unique_ptr<engine::Machine> machine = engine::Machine::create().value();
  const wasi::Clocks& clocks = machine->clocks();
  storage::MemoryDisk disk;
  std::unique_ptr<storage::Storage> storage = storage::open_memory_storage(disk);
  std::unique_ptr<storage::ObjectStorage> object = storage->open(kName, {}).value();
  std::shared_ptr<engine::Engine> javascript = load("javascript");
  std::shared_ptr<engine::Engine> python = load("python");
  std::unique_ptr<EmbeddedSandbox> sandbox = EmbeddedSandbox::open(*object, clocks).value();

  std::shared_ptr<engine::Engine> load(const char* language) {
    return machine->load(engine::find_language(language).value()).value();
  }
  void reopen() {
    sandbox.reset();
    sandbox = EmbeddedSandbox::open(*object, clocks).value();
  }
  Result<interpreter::ExecuteResult> execute(const std::shared_ptr<engine::Engine>& engine,
                                             std::string_view context, std::string code) {
    engine::RunRequest request;
    request.code = std::move(code);
    wasi::BufferSink sink;
    return sandbox->execute(engine, context, std::move(request), sink);
  }
  std::string value(const std::shared_ptr<engine::Engine>& engine, std::string_view context, std::string code) {
    const auto result = execute(engine, context, std::move(code));
    if (!result.ok()) return result.error().message;
    if (result->outcome.error) return result->outcome.error->name;
    return result->outcome.value ? result->outcome.value->text : "";
  }
  void on_guest_thread(const std::function<void()>& body) {
    ASSERT_TRUE(machine
                    ->on_guest_thread([&] {
                      body();
                      sandbox.reset();
                    })
                    .ok());
  }
};

TEST_F(EmbeddedSandboxTest, LanguagesShareFilesAndKeepStateOverARestart) {
  on_guest_thread([&] {
    EXPECT_EQ(value(javascript, "js", "fs.writeFileSync('/workspace/shared.txt', 'from js'); var n = 1; n"), "1");
    EXPECT_EQ(value(python, "py", "n = 41; open('/workspace/shared.txt').read()"), "'from js'");
    EXPECT_EQ(value(python, "py", "f = open('/workspace/log.txt', 'w'); f.write('one\\n')"), "4");
    reopen();
    EXPECT_EQ(value(python, "py", "n + 1"), "42");
    EXPECT_EQ(value(python, "py", "f.write('two\\n'); f.flush(); open('/workspace/log.txt').read()"),
              "'one\\ntwo\\n'");
    EXPECT_EQ(value(javascript, "js", "n += 1; fs.readFileSync('/workspace/log.txt', 'utf8').length + n"), "10");
    EXPECT_THAT(*sandbox->contexts(), SizeIs(2));
  });
}

TEST_F(EmbeddedSandboxTest, AFailedCommitLeavesFilesAndMemoryOfTheRunBefore) {
  on_guest_thread([&] {
    EXPECT_EQ(value(python, "py", "n = 1; open('/workspace/n', 'w').write('1')"), "1");
    disk.fail_commits(Error{ErrorCode::kUnavailable, "disk full", 0});
    EXPECT_THAT(value(python, "py", "n = 2; open('/workspace/n', 'w').write('2')"), HasSubstr("disk full"));
    disk.fail_commits(std::nullopt);
    reopen();
    EXPECT_EQ(value(python, "py", "str(n) + open('/workspace/n').read()"), "'11'");
  });
}

TEST_F(EmbeddedSandboxTest, AContextHasOneLanguage) {
  on_guest_thread([&] {
    EXPECT_EQ(value(python, "c", "1 + 1"), "2");
    EXPECT_THAT(execute(javascript, "c", "1").error().message, HasSubstr("is in python"));
  });
}

}  // namespace
}  // namespace sw::sandbox
