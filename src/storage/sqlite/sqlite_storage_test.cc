// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/sqlite_storage.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>

#include "sandbox_workers/base/unique_fd.h"
#include "storage/sqlite/backup.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/data_folder.h"
#include "storage/sqlite/faulty_disk.h"
#include "storage/sqlite/object_file.h"

namespace sw::storage {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

Time at(std::int64_t ms) { return Time(std::chrono::milliseconds(ms)); }

TemporaryDirectory temporary() {
  return *TemporaryDirectory::create(fs::temp_directory_path(), "sw-sqlite-");
}

std::unique_ptr<Storage> open_storage(const fs::path& folder, SqliteOptions options = {}) {
  auto opened = open_sqlite_storage(folder, std::move(options));
  EXPECT_TRUE(opened.ok()) << opened.error().message;
  return opened.ok() ? *std::move(opened) : nullptr;
}

Result<void> put(Storage& storage, const ObjectName& name, std::string key, std::string value) {
  SW_TRY(auto object, storage.open(name, {}));
  return object->transact(
      [&](Transaction& transaction) { return transaction.put(1, key, as_bytes(value)); });
}

Result<std::string> get(Storage& storage, const ObjectName& name, std::string key) {
  SW_TRY(auto object, storage.open(name, {}));
  std::string text = "(nothing)";
  SW_CHECK_OK(object->read([&](Reader& reader) -> Result<void> {
    SW_TRY(const auto value, reader.get(1, key));
    if (value) text = as_text(*value);
    return {};
  }));
  return text;
}

std::string due(Storage& storage) {
  auto alarms = storage.alarms_until(Time::max(), 1000);
  EXPECT_TRUE(alarms.ok()) << alarms.error().message;
  std::string text;
  for (const DueAlarm& alarm : *alarms) {
    text += alarm.name.id + "@" + std::to_string(alarm.time.time_since_epoch().count()) + " ";
  }
  return text;
}

std::vector<fs::path> object_files(const fs::path& folder) {
  std::vector<fs::path> files;
  const DataFolder data = DataFolder::look_at(folder);
  const auto numbers = data.object_files();
  for (const std::int64_t file : *numbers) {
    files.push_back(data.object(file));
  }
  return files;
}

std::string whole_file(const fs::path& path) { return read_text_file(path).value(); }

// ---- the folder

TEST(DataFolder, IsPrivateAndBelongsToOneProcess) {
  const TemporaryDirectory parent = temporary();
  const fs::path folder = parent.path() / "data";
  const auto storage = open_storage(folder);
  struct stat info = {};
  ASSERT_EQ(::stat(folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
  const auto second = open_sqlite_storage(folder, {});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(second.error().message, HasSubstr("in use by process " + std::to_string(::getpid())));
}

TEST(DataFolder, IsFreeAgainWhenItsOwnerEnds) {
  const TemporaryDirectory folder = temporary();
  ASSERT_TRUE(put(*open_storage(folder.path()), {"a", "1"}, "key", "x").ok());
  EXPECT_EQ(*get(*open_storage(folder.path()), {"a", "1"}, "key"), "x");
}

TEST(DataFolder, ThatOthersCanWriteToIsRefused) {
  const TemporaryDirectory folder = temporary();
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  EXPECT_EQ(open_sqlite_storage(folder.path(), {}).error().code, ErrorCode::kPermission);
}

// ---- damage

TEST(SqliteStorage, ADamagedObjectIsNamedAndOthersAreNotAffected) {
  const TemporaryDirectory folder = temporary();
  {
    const auto storage = open_storage(folder.path());
    ASSERT_TRUE(put(*storage, {"a", "bad"}, "key", "x").ok());
    ASSERT_TRUE(put(*storage, {"a", "good"}, "key", "y").ok());
  }
  const fs::path file = DataFolder::look_at(folder.path()).object(1);
  const std::string whole = whole_file(file);
  const std::size_t sizes[] = {0, 10, 100, 512, 1024, 1500, 2048, 3000};
  for (const std::size_t size : sizes) {
    std::ofstream(file, std::ios::binary) << whole.substr(0, size);
    const auto storage = open_storage(folder.path());
    const auto read = get(*storage, {"a", "bad"}, "key");
    ASSERT_FALSE(read.ok()) << "cut to " << size << " bytes";
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt) << read.error().message;
    EXPECT_THAT(read.error().message, HasSubstr(file.native()));
    EXPECT_EQ(put(*storage, {"a", "bad"}, "key", "z").error().code, ErrorCode::kCorrupt);
    EXPECT_EQ(*get(*storage, {"a", "good"}, "key"), "y");
  }
  // Nothing was wiped: the file put back is the object again.
  std::ofstream(file, std::ios::binary) << whole;
  EXPECT_EQ(*get(*open_storage(folder.path()), {"a", "bad"}, "key"), "x");
}

TEST(SqliteStorage, RandomDamageIsAnErrorOrHarmlessButNeverACrash) {
  const TemporaryDirectory folder = temporary();
  {
    const auto storage = open_storage(folder.path());
    for (int i = 0; i < 40; ++i)
      ASSERT_TRUE(put(*storage, {"a", "1"}, std::to_string(i), std::string(300, 'v')).ok());
  }
  const fs::path file = DataFolder::look_at(folder.path()).object(1);
  const std::string whole = whole_file(file);
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 60; ++round) {
    std::string damaged = whole;
    for (int i = 0; i < 20; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    std::ofstream(file, std::ios::binary) << damaged;
    const auto storage = open_storage(folder.path());
    auto object = *storage->open({"a", "1"}, {});
    const auto done = object->transact([](Transaction& transaction) -> Result<void> {
      SW_CHECK_OK(transaction.scan({1, "", ""}, Order::kAscending, [](std::string_view, BytesView) {
        return Result<Scan>(Scan::kContinue);
      }));
      SW_CHECK_OK(transaction.put(1, "5", as_bytes("new")));
      return transaction.erase_range({1, "2", "3"});
    });
    if (!done.ok()) {
      EXPECT_NE(done.error().code, ErrorCode::kConflict) << done.error().message;
    }
  }
}

TEST(SqliteStorage, AMissingObjectFileIsDamageNotAnEmptyObject) {
  const TemporaryDirectory folder = temporary();
  ASSERT_TRUE(put(*open_storage(folder.path()), {"a", "1"}, "key", "x").ok());
  ASSERT_TRUE(fs::remove(DataFolder::look_at(folder.path()).object(1)));
  const auto read = get(*open_storage(folder.path()), {"a", "1"}, "key");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
}

TEST(SqliteStorage, ADamagedObjectDoesNotHoldUpTheAlarmsOfOthers) {
  const TemporaryDirectory folder = temporary();
  {
    const auto storage = open_storage(folder.path());
    for (const char* id : {"bad", "good"}) {
      auto object = *storage->open({"a", id}, {});
      ASSERT_TRUE(
          object->transact([](Transaction& transaction) { return transaction.set_alarm(at(7)); })
              .ok());
    }
  }
  std::ofstream(DataFolder::look_at(folder.path()).object(1), std::ios::binary) << "rubbish";
  std::string notices;
  const auto storage =
      open_storage(folder.path(), {.vfs = {}, .on_notice = [&](std::string_view notice) {
                                     notices += std::string(notice) + "\n";
                                   }});
  EXPECT_EQ(due(*storage), "good@7 ");
  EXPECT_THAT(notices, HasSubstr("is damaged"));
}

TEST(SqliteStorage, ACatalogThatIsLostOrDamagedIsMadeAnew) {
  const TemporaryDirectory folder = temporary();
  const fs::path catalog = folder.path() / "catalog.sqlite";
  {
    const auto storage = open_storage(folder.path());
    for (const char* id : {"1", "2", "3"}) ASSERT_TRUE(put(*storage, {"a", id}, "key", id).ok());
    auto object = *storage->open({"a", "2"}, {});
    ASSERT_TRUE(
        object->transact([](Transaction& transaction) { return transaction.set_alarm(at(9)); })
            .ok());
    ASSERT_TRUE(storage->remove({"a", "3"}).ok());
  }
  for (const bool lost : {true, false}) {
    if (lost) {
      fs::remove(catalog);
    } else {
      std::ofstream(catalog, std::ios::binary) << std::string(5000, '?');
    }
    const auto storage = open_storage(folder.path());
    EXPECT_EQ((*storage->list("a", "", 10)).size(), 2U);
    EXPECT_EQ(*get(*storage, {"a", "1"}, "key"), "1");
    EXPECT_EQ(*get(*storage, {"a", "3"}, "key"), "(nothing)");
    EXPECT_EQ(due(*storage), "2@9 ");
  }
  const auto storage = open_storage(folder.path());
  ASSERT_TRUE(put(*storage, {"a", "new"}, "key", "x").ok());
  EXPECT_EQ(*get(*storage, {"a", "1"}, "key"), "1");
}

// ---- formats

TEST(SqliteStorage, AnObjectFileOfANewerFormatIsRefusedAndLeftAsItIs) {
  const TemporaryDirectory folder = temporary();
  ASSERT_TRUE(put(*open_storage(folder.path()), {"a", "1"}, "key", "x").ok());
  const fs::path file = DataFolder::look_at(folder.path()).object(1);
  ASSERT_TRUE((*Connection::open(file, Connection::Mode::kExisting, ""))
                  ->execute("PRAGMA user_version = 99")
                  .ok());
  const auto refused = put(*open_storage(folder.path()), {"a", "1"}, "key", "y");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("has format 99"));
  ASSERT_TRUE((*Connection::open(file, Connection::Mode::kExisting, ""))
                  ->execute("PRAGMA user_version = 1")
                  .ok());
  EXPECT_EQ(*get(*open_storage(folder.path()), {"a", "1"}, "key"), "x");
}

TEST(Migrate, RunsTheStepsNotSeenYetOnceAndAllOrNone) {
  auto connection = *Connection::open_in_memory();
  const auto migrated = [&](const std::vector<std::string>& steps) -> Result<void> {
    RollbackGuard guard(*connection);
    SW_CHECK_OK(connection->execute("BEGIN"));
    SW_CHECK_OK(migrate(*connection, steps));
    return connection->execute("COMMIT");
  };
  const std::string one = "CREATE TABLE t (x INTEGER); INSERT INTO t VALUES (1);";
  const std::string two = "ALTER TABLE t ADD COLUMN y INTEGER; UPDATE t SET y = x * 10;";
  ASSERT_TRUE(migrated({one}).ok());
  ASSERT_TRUE(migrated({one}).ok());
  EXPECT_FALSE(migrated({one, two, "NONSENSE"}).ok());
  EXPECT_EQ(*connection->number("PRAGMA user_version"), 1);
  EXPECT_FALSE(connection->number("SELECT y FROM t").ok());
  ASSERT_TRUE(migrated({one, two}).ok());
  EXPECT_EQ(*connection->number("SELECT y FROM t"), 10);
  EXPECT_EQ(migrated({one}).error().code, ErrorCode::kInvalidArgument);
}

// ---- deletion

TEST(SqliteStorage, ARemovedObjectLeavesNoFile) {
  const TemporaryDirectory folder = temporary();
  const auto storage = open_storage(folder.path());
  ASSERT_TRUE(put(*storage, {"a", "1"}, "key", "x").ok());
  ASSERT_EQ(object_files(folder.path()).size(), 1U);
  ASSERT_TRUE(storage->remove({"a", "1"}).ok());
  std::string left;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path() / "objects")) {
    if (entry.is_regular_file()) left += entry.path().native() + " ";
  }
  EXPECT_EQ(left, "");
}

TEST(SqliteStorage, AFileNumberIsNeverUsedAgain) {
  const TemporaryDirectory folder = temporary();
  for (int round = 0; round < 3; ++round) {
    const auto storage = open_storage(folder.path());
    ASSERT_TRUE(put(*storage, {"a", "1"}, "key", "x").ok());
    EXPECT_EQ(object_files(folder.path()).front(),
              DataFolder::look_at(folder.path()).object(round + 1));
    ASSERT_TRUE(storage->remove({"a", "1"}).ok());
  }
}

TEST(SqliteStorage, AnObjectThatLostMostOfItsDataGivesTheSpaceBack) {
  const TemporaryDirectory folder = temporary();
  {
    const auto storage =
        open_storage(folder.path(), {.idle_open_max = 0, .vfs = {}, .on_notice = {}});
    ASSERT_TRUE(put(*storage, {"a", "1"}, "large", std::string(8U << 20U, 'x')).ok());
    ASSERT_TRUE(put(*storage, {"a", "1"}, "large", "small now").ok());
    EXPECT_EQ(*get(*storage, {"a", "1"}, "large"), "small now");
  }
  EXPECT_LT(fs::file_size(DataFolder::look_at(folder.path()).object(1)), 1U << 20U);
}

// ---- costs

std::uint64_t written_bytes(const char* which) {
  std::ifstream io("/proc/self/io");
  std::string name;
  std::uint64_t value = 0;
  while (io >> name >> value) {
    if (name == which) return value;
  }
  ADD_FAILURE() << "no " << which;
  return 0;
}

TEST(SqliteStorage, ASmallStepWritesAFewKilobytes) {
  const TemporaryDirectory folder = temporary();
  const auto storage = open_storage(folder.path());
  auto object = *storage->open({"a", "1"}, {});
  std::mt19937 random(1);
  const auto step = [&] {
    // What a small step of a context changes: a row of 200 bytes about it, and 1.2 to 1.8 KB of
    // compressed pages.
    std::string about(200, 'a');
    std::string pages(1200 + random() % 600, ' ');
    for (char& c : pages) c = static_cast<char>(random());
    about[random() % about.size()] = 'b';
    ASSERT_TRUE(object
                    ->transact([&](Transaction& transaction) -> Result<void> {
                      SW_CHECK_OK(transaction.put(1, "context", as_bytes(about)));
                      return transaction.put(2, "pages", as_bytes(pages));
                    })
                    .ok());
  };
  constexpr std::uint64_t kSteps = 300;
  for (int i = 0; i < 20; ++i) step();
  const std::uint64_t before = written_bytes("wchar:");
  const std::uint64_t blocks_before = written_bytes("write_bytes:");
  for (std::uint64_t i = 0; i < kSteps; ++i) step();
  EXPECT_LE((written_bytes("wchar:") - before) / kSteps, 4500U);
  // In whole blocks of the page cache; a file system in memory counts none.
  EXPECT_LE((written_bytes("write_bytes:") - blocks_before) / kSteps, 9000U);
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), {}));
}

TEST(SqliteStorage, TenThousandObjectsTakeABoundedNumberOfDescriptors) {
  const TemporaryDirectory folder = temporary();
  FaultyDisk disk;
  disk.set_syncs(FaultyDisk::Syncs::kSkipped);
  constexpr int kObjects = 10'000;
  constexpr std::size_t kIdleMax = 16;
  const std::size_t before = open_descriptors();
  const auto storage =
      open_storage(folder.path(), {.idle_open_max = kIdleMax, .vfs = disk.name(), .on_notice = {}});
  std::vector<std::unique_ptr<ObjectStorage>> objects;
  std::size_t most = 0;
  for (int i = 0; i < kObjects; ++i) {
    objects.push_back(*storage->open({"a", std::to_string(i)}, {}));
    ASSERT_TRUE(objects.back()
                    ->transact([&](Transaction& transaction) -> Result<void> {
                      SW_CHECK_OK(transaction.set_alarm(at(i)));
                      return transaction.put(1, "n", as_bytes(std::to_string(i)));
                    })
                    .ok());
    if (i % 100 == 0) most = std::max(most, open_descriptors());
  }
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    const std::size_t which = random() % kObjects;
    std::string text;
    ASSERT_TRUE(objects[which]
                    ->read([&](Reader& reader) -> Result<void> {
                      SW_TRY(const auto value, reader.get(1, "n"));
                      text = as_text(value.value_or(Bytes()));
                      return {};
                    })
                    .ok());
    ASSERT_EQ(text, std::to_string(which));
    if (i % 100 == 0) most = std::max(most, open_descriptors());
  }
  // Three for each idle database and the catalog, the lock, and one database in use.
  EXPECT_LE(most - before, (kIdleMax + 2) * 3 + 2);
  EXPECT_EQ((*storage->alarms_until(at(49), 100)).size(), 50U);
  EXPECT_EQ((*storage->list("a", "9998", 10)).size(), 1U);
}

// ---- crashes

// A run of commits over a few objects, each of which is a state that a restart may find.
class Scenario {
 public:
  // What objects there are, with their rows and alarms, as text.
  using Picture = std::string;

  static Picture look(Storage& storage) {
    Picture picture;
    for (const char* id : {"a", "b"}) {
      const auto info = storage.find({"x", id});
      EXPECT_TRUE(info.ok());
      auto object = *storage.open({"x", id}, {});
      std::optional<Time> alarm;
      const auto read = object->read([&](Reader& reader) -> Result<void> {
        SW_TRY(alarm, reader.alarm());
        return reader.scan(
            {1, "", ""}, Order::kAscending, [&](std::string_view key, BytesView value) {
              const std::string text(as_text(value));
              picture += std::string(id) + "." + std::string(key) + "=" + text.substr(0, 3) +
                         std::to_string(text.size()) +
                         (text.find_first_not_of(text[0]) == std::string::npos ? "" : "MIXED") +
                         " ";
              return Result<Scan>(Scan::kContinue);
            });
      });
      EXPECT_TRUE(read.ok()) << read.error().message;
      if (alarm)
        picture += std::string(id) + "@" + std::to_string(alarm->time_since_epoch().count()) + " ";
    }
    return picture;
  }

  // Each is one transaction.
  static std::vector<std::function<Result<void>(Storage&)>> steps() {
    std::vector<std::function<Result<void>(Storage&)>> all;
    const auto write = [&](std::string id, char fill, std::size_t size, std::optional<Time> alarm) {
      all.push_back([=](Storage& storage) -> Result<void> {
        SW_TRY(auto object, storage.open({"x", id}, {}));
        return object->transact([&](Transaction& transaction) -> Result<void> {
          const std::string value(size, fill);
          SW_CHECK_OK(transaction.put(1, "p", as_bytes(value)));
          SW_CHECK_OK(transaction.put(1, "q", as_bytes(value)));
          return transaction.set_alarm(alarm);
        });
      });
    };
    write("a", '1', 10, at(50));
    write("b", '2', 3000, std::nullopt);
    write("a", '3', 20000, at(20));
    write("a", '4', 2500, at(90));
    write("b", '5', 10, at(10));
    all.push_back([](Storage& storage) -> Result<void> {
      SW_TRY(auto object, storage.open({"x", "a"}, {}));
      return object->destroy();
    });
    write("a", '6', 700, at(30));
    write("b", '7', 5000, std::nullopt);
    all.push_back([](Storage& storage) { return storage.remove({"x", "b"}); });
    write("b", '8', 50, at(5));
    return all;
  }
};

// The words about alarms, in an order of their own.
std::string alarms_of(const std::string& picture) {
  std::istringstream words(picture);
  std::vector<std::string> alarms{std::istream_iterator<std::string>(words), {}};
  std::erase_if(alarms,
                [](const std::string& word) { return word.find('@') == std::string::npos; });
  std::sort(alarms.begin(), alarms.end());
  std::string text;
  for (const std::string& alarm : alarms) text += alarm + " ";
  return text;
}

enum class Ending { kProcessDies, kPowerLost, kPowerLostTorn };

class CrashAtEveryChange : public testing::TestWithParam<Ending> {};

TEST_P(CrashAtEveryChange, LeavesTheLastCommitOrTheOneInFlight) {
  const auto steps = Scenario::steps();
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  // The pictures after each step, from a run without a fault.
  std::vector<Scenario::Picture> pictures{""};
  {
    const TemporaryDirectory folder = temporary();
    FaultyDisk disk;
    const auto storage =
        open_storage(folder.path(), {.idle_open_max = 1, .vfs = disk.name(), .on_notice = {}});
    for (const auto& step : steps) {
      ASSERT_TRUE(step(*storage).ok());
      pictures.push_back(Scenario::look(*storage));
    }
  }
  std::uint64_t fault = 1;
  for (bool survived = false; !survived; ++fault) {
    SCOPED_TRACE("fault at change " + std::to_string(fault));
    ASSERT_LT(fault, 2000U);
    const TemporaryDirectory folder = temporary();
    // Folders that are there already need not be synced, for which this test would wait most of its
    // time.
    for (std::int64_t file = 1; file < 10; ++file) {
      fs::create_directories(DataFolder::look_at(folder.path()).object(file).parent_path());
    }
    FaultyDisk disk;
    std::size_t done = 0;
    disk.fail_from(fault);
    {
      // One idle database, so that databases are closed and opened along the way.
      auto storage = open_sqlite_storage(folder.path(),
                                         {.idle_open_max = 1, .vfs = disk.name(), .on_notice = {}});
      while (storage.ok() && done < steps.size() && steps[done](**storage).ok()) ++done;
    }
    survived = !disk.failing();
    if (GetParam() != Ending::kProcessDies) {
      disk.lose_power(GetParam() == Ending::kPowerLost ? FaultyDisk::Unsynced::kLost
                                                       : FaultyDisk::Unsynced::kTorn,
                      random);
    }
    disk.fail_from(1'000'000);
    disk.set_syncs(FaultyDisk::Syncs::kSkipped);
    const auto storage =
        open_storage(folder.path(), {.idle_open_max = 4, .vfs = disk.name(), .on_notice = {}});
    ASSERT_TRUE(storage);
    const Scenario::Picture found = Scenario::look(*storage);
    const Scenario::Picture& next = pictures[std::min(done + 1, steps.size())];
    EXPECT_TRUE(found == pictures[done] || found == next)
        << "found " << found << "\nafter " << pictures[done] << "\nbefore " << next;
    // The index of alarms agrees with the objects, and all goes on from here.
    EXPECT_EQ(alarms_of(due(*storage)), alarms_of(found));
    for (const char* id : {"a", "b"}) {
      ASSERT_TRUE(put(*storage, {"x", id}, "after", "z").ok());
      EXPECT_EQ(*get(*storage, {"x", id}, "after"), "z");
    }
    if (testing::Test::HasFailure()) break;
  }
  EXPECT_GT(fault, 100U);  // else the faults did not reach the steps
}

INSTANTIATE_TEST_SUITE_P(Endings, CrashAtEveryChange,
                         testing::Values(Ending::kProcessDies, Ending::kPowerLost,
                                         Ending::kPowerLostTorn),
                         [](const auto& ending) {
                           return ending.param == Ending::kProcessDies ? "ProcessDies"
                                  : ending.param == Ending::kPowerLost ? "PowerLost"
                                                                       : "PowerLostTorn";
                         });

TEST(SqliteStorage, GoesOnAfterADiskThatWasFull) {
  const TemporaryDirectory folder = temporary();
  FaultyDisk disk;
  const auto storage =
      open_storage(folder.path(), {.idle_open_max = 4, .vfs = disk.name(), .on_notice = {}});
  ASSERT_TRUE(put(*storage, {"a", "1"}, "key", "before").ok());
  disk.fail_from(1);
  EXPECT_EQ(put(*storage, {"a", "1"}, "key", "lost").error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(put(*storage, {"a", "2"}, "key", "lost").error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(storage->remove({"a", "1"}).error().code, ErrorCode::kUnavailable);
  disk.fail_from(1'000'000);
  EXPECT_EQ(*get(*storage, {"a", "1"}, "key"), "before");
  EXPECT_EQ(*get(*storage, {"a", "2"}, "key"), "(nothing)");
  ASSERT_TRUE(put(*storage, {"a", "1"}, "key", "after").ok());
  ASSERT_TRUE(put(*storage, {"a", "2"}, "key", "after").ok());
  EXPECT_EQ(*get(*storage, {"a", "1"}, "key"), "after");
  EXPECT_EQ(*get(*storage, {"a", "2"}, "key"), "after");
}

// In the child: commits for ever, and says so for each commit.
[[noreturn]] void commit_until_killed(const fs::path& folder, int report) {
  auto storage = open_sqlite_storage(folder, {.idle_open_max = 2, .vfs = {}, .on_notice = {}});
  if (!storage.ok()) ::_exit(2);
  std::vector<std::unique_ptr<ObjectStorage>> objects;
  for (int i = 0; i < 4; ++i) objects.push_back(*(*storage)->open({"k", std::to_string(i)}, {}));
  for (unsigned step = 0;; ++step) {
    const unsigned which = step % 4;
    unsigned number = 0;
    const auto done = objects[which]->transact([&](Transaction& transaction) -> Result<void> {
      SW_TRY(const auto before, transaction.get(1, "0"));
      number = before ? static_cast<unsigned>(std::stoul(std::string(as_text(*before)))) + 1 : 1;
      for (const char* key : {"0", "1", "2"}) {
        SW_CHECK_OK(transaction.put(1, key, as_bytes(std::to_string(number))));
      }
      SW_CHECK_OK(transaction.put(2, "large", Bytes(number * 7919 % 9000, std::byte{1})));
      return transaction.set_alarm(at(number % 2 == 0 ? number : 1000 - number));
    });
    if (!done.ok()) ::_exit(3);
    const unsigned message[2] = {which, number};
    if (::write(report, message, sizeof message) != sizeof message) ::_exit(4);
  }
}

TEST(SqliteStorage, LosesAtMostTheCommitInFlightWhenItsProcessIsKilled) {
  const TemporaryDirectory folder = temporary();
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  unsigned last[4] = {0, 0, 0, 0};
  for (int round = 0; round < 25; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const UniqueFd from_child(ends[0]);
    UniqueFd to_parent(ends[1]);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) commit_until_killed(folder.path(), ends[1]);
    to_parent = UniqueFd();
    // Killed after some commits, and then at a moment that nothing but chance decides.
    unsigned message[2];
    for (auto left = random() % 20; left > 0; --left) {
      ASSERT_EQ(::read(from_child.get(), message, sizeof message),
                static_cast<ssize_t>(sizeof message));
      last[message[0]] = message[1];
    }
    for (auto spin = random() % 2'000'000; spin > 0; --spin) asm volatile("");
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    while (::read(from_child.get(), message, sizeof message) ==
           static_cast<ssize_t>(sizeof message)) {
      last[message[0]] = message[1];
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << status;

    const auto storage = open_storage(folder.path());
    std::string alarms;
    for (unsigned which = 0; which < 4; ++which) {
      const ObjectName name{"k", std::to_string(which)};
      const std::string text = *get(*storage, name, "0");
      const unsigned found = text == "(nothing)" ? 0 : static_cast<unsigned>(std::stoul(text));
      EXPECT_GE(found, last[which]);
      EXPECT_LE(found, last[which] + 1);
      EXPECT_EQ(*get(*storage, name, "1"), text);
      EXPECT_EQ(*get(*storage, name, "2"), text);
      last[which] = found;
      const unsigned alarm = found % 2 == 0 ? found : 1000 - found;
      if (found > 0) alarms += name.id + "@" + std::to_string(alarm) + " ";
    }
    EXPECT_EQ(alarms_of(due(*storage)), alarms_of(alarms));
  }
}

// ---- backup

TEST(BackUp, CopiesAllObjectsAndAlarmsToAFolderThatCanBeUsed) {
  const TemporaryDirectory folder = temporary();
  const fs::path copy = folder.path() / "copies" / "first";
  const auto storage = open_storage(folder.path() / "data");
  for (const char* id : {"1", "2", "3"}) ASSERT_TRUE(put(*storage, {"a", id}, "key", id).ok());
  auto object = *storage->open({"a", "2"}, {});
  ASSERT_TRUE(
      object->transact([](Transaction& transaction) { return transaction.set_alarm(at(9)); }).ok());
  ASSERT_TRUE(storage->remove({"a", "3"}).ok());
  const auto report = back_up(folder.path() / "data", copy);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->objects, 2U);
  EXPECT_TRUE(report->damaged.empty());
  ASSERT_TRUE(put(*storage, {"a", "1"}, "key", "changed later").ok());
  struct stat info = {};
  ASSERT_EQ(::stat(copy.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);

  const auto restored = open_storage(copy);
  EXPECT_EQ(*get(*restored, {"a", "1"}, "key"), "1");
  EXPECT_EQ(*get(*restored, {"a", "3"}, "key"), "(nothing)");
  EXPECT_EQ(due(*restored), "2@9 ");
  ASSERT_TRUE(put(*restored, {"a", "new"}, "key", "x").ok());
}

TEST(BackUp, HoldsNothingThatWasDeleted) {
  const TemporaryDirectory folder = temporary();
  const auto storage = open_storage(folder.path() / "data");
  auto object = *storage->open({"a", "1"}, {});
  const std::string secret = "the-secret-that-was-deleted";
  ASSERT_TRUE(put(*storage, {"a", "1"}, "key", secret + std::string(3000, 'x')).ok());
  ASSERT_TRUE(put(*storage, {"a", "1"}, "other", "stays").ok());
  object = *storage->open({"a", "1"}, {});
  ASSERT_TRUE(
      object->transact([](Transaction& transaction) { return transaction.erase(1, "key"); }).ok());
  ASSERT_TRUE(back_up(folder.path() / "data", folder.path() / "copy").ok());
  for (const fs::path& file : object_files(folder.path() / "copy")) {
    EXPECT_EQ(whole_file(file).find(secret), std::string::npos);
  }
}

TEST(BackUp, RefusesAFolderThatExistsAndOneThatIsNoDataFolder) {
  const TemporaryDirectory folder = temporary();
  { open_storage(folder.path() / "data"); }
  EXPECT_EQ(back_up(folder.path() / "data", folder.path()).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(back_up(folder.path() / "none", folder.path() / "copy").error().code,
            ErrorCode::kNotFound);
  EXPECT_FALSE(fs::exists(folder.path() / "copy"));
}

TEST(BackUp, NamesADamagedObjectAndCopiesTheOthers) {
  const TemporaryDirectory folder = temporary();
  const fs::path data = folder.path() / "data";
  {
    const auto storage = open_storage(data);
    ASSERT_TRUE(put(*storage, {"a", "bad"}, "key", "x").ok());
    ASSERT_TRUE(put(*storage, {"a", "good"}, "key", "y").ok());
    ASSERT_TRUE(put(*storage, {"a", "missing"}, "key", "z").ok());
  }
  std::ofstream(DataFolder::look_at(data).object(1), std::ios::binary) << std::string(4096, '?');
  fs::remove(DataFolder::look_at(data).object(3));
  const auto report = back_up(data, folder.path() / "copy");
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->objects, 1U);
  EXPECT_THAT(report->damaged, testing::ElementsAre(HasSubstr("a/bad"), HasSubstr("a/missing")));
  const auto restored = open_storage(folder.path() / "copy");
  EXPECT_EQ(*get(*restored, {"a", "good"}, "key"), "y");
  EXPECT_EQ((*restored->list("a", "", 10)).size(), 1U);
}

TEST(BackUp, IsConsistentWhileAnotherProcessCommits) {
  const TemporaryDirectory folder = temporary();
  const fs::path data = folder.path() / "data";
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd from_child(ends[0]);
  UniqueFd to_parent(ends[1]);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) commit_until_killed(data, ends[1]);
  to_parent = UniqueFd();
  unsigned last[4] = {0, 0, 0, 0};
  unsigned message[2];
  for (int copy = 0; copy < 5; ++copy) {
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(::read(from_child.get(), message, sizeof message),
                static_cast<ssize_t>(sizeof message));
      last[message[0]] = message[1];
    }
    const fs::path target = folder.path() / std::to_string(copy);
    const auto report = back_up(data, target);
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(report->objects, 4U);
    const auto restored = open_storage(target);
    std::string alarms;
    for (unsigned which = 0; which < 4; ++which) {
      const ObjectName name{"k", std::to_string(which)};
      const std::string text = *get(*restored, name, "0");
      const auto found = static_cast<unsigned>(std::stoul(text));
      EXPECT_GE(found, last[which]);
      EXPECT_EQ(*get(*restored, name, "1"), text);
      EXPECT_EQ(*get(*restored, name, "2"), text);
      alarms += name.id + "@" + std::to_string(found % 2 == 0 ? found : 1000 - found) + " ";
    }
    EXPECT_EQ(alarms_of(due(*restored)), alarms_of(alarms));
  }
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
}

}  // namespace
}  // namespace sw::storage
