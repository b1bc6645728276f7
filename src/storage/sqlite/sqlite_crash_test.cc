// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What a crash, a loss of power or a full disk leaves.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "sandbox_workers/base/unique_fd.h"
#include "storage/sqlite/data_folder.h"
#include "storage/sqlite/faulty_disk.h"
#include "storage/sqlite/sqlite_fixture.h"
#include "storage/sqlite/sqlite_storage.h"

namespace sw::storage {
namespace {

namespace fs = std::filesystem;

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
      // A short journal, so that rows move to the databases along the way, and one idle database, so
      // that databases are closed and opened.
      auto storage = open_sqlite_storage(folder.path(), {.idle_open_max = 1,
                                                         .vfs = disk.name(),
                                                         .on_notice = {},
                                                         .journal_bytes_max = 2000,
                                                         .journal_bytes_left = 0});
      while (storage.ok() && done < steps.size() && steps[done](**storage).ok()) ++done;
    }
    survived = !disk.failing();
    end(disk, GetParam(), random);
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

INSTANTIATE_TEST_SUITE_P(Endings, CrashAtEveryChange, all_endings(), name_of);

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

}  // namespace
}  // namespace sw::storage
