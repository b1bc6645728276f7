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
  static constexpr const char* kIds[] = {"a", "b", "c"};

  struct Step {
    std::function<Result<void>(Storage&, Durability)> take;
    bool can_relax = false;
  };

  static Picture look(Storage& storage) {
    Picture picture;
    for (const char* id : kIds) {
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

  static TransactionBody filling(char fill, std::size_t size, std::optional<Time> alarm) {
    return [=](Transaction& transaction) -> Result<void> {
      const std::string value(size, fill);
      SW_CHECK_OK(transaction.put(1, "p", as_bytes(value)));
      SW_CHECK_OK(transaction.put(1, "q", as_bytes(value)));
      return transaction.set_alarm(alarm);
    };
  }

  static Step write(std::string id, char fill, std::size_t size, std::optional<Time> alarm) {
    return {[=](Storage& storage, Durability durability) -> Result<void> {
              SW_TRY(auto object, storage.open({"x", id}, {}));
              return object->transact(filling(fill, size, alarm), {.durability = durability});
            },
            true};
  }
  static Step write_both(char fill, std::size_t size) {
    return {[=](Storage& storage, Durability durability) -> Result<void> {
              SW_TRY(auto a, storage.open({"x", "a"}, {}));
              SW_TRY(auto b, storage.open({"x", "b"}, {}));
              const TransactionBody body = filling(fill, size, std::nullopt);
              return a->transact(body, {.durability = durability, .also = {{*b, body}}});
            },
            true};
  }
  static Step copy(const char* from, const char* to, char fill) {
    return {[=](Storage& storage, Durability) {
      return storage.change({.copies = {{{"x", from}, {"x", to}, filling(fill, 20, {})}}});
    }};
  }
  static Step remove(const char* id) {
    return {[=](Storage& storage, Durability) { return storage.remove({"x", id}); }};
  }

  // Each is one transaction.
  static std::vector<Step> steps() {
    return {write("a", '1', 10, at(50)),
            write("b", '2', 3000, std::nullopt),
            write("a", '3', 20000, at(20)),
            write_both('4', 900),
            write("a", '5', 2500, at(90)),
            copy("a", "c", '6'),
            write("b", '7', 10, at(10)),
            write("c", '8', 30, at(40)),
            {[](Storage& storage, Durability) -> Result<void> {
              SW_TRY(auto object, storage.open({"x", "a"}, {}));
              return object->destroy();
            }},
            write("a", '9', 700, at(30)),
            copy("c", "a", 'A'),
            write("b", 'B', 5000, std::nullopt),
            remove("b"),
            write_both('C', 60),
            write("b", 'D', 50, at(5))};
  }

  // The pictures after each step, from a run without a fault.
  static std::vector<Picture> pictures() {
    std::vector<Picture> all{""};
    const TemporaryDirectory folder = temporary();
    FaultyDisk disk;
    const auto storage =
        open_storage(folder.path(), {.idle_open_max = 1, .vfs = disk.name(), .on_notice = {}});
    for (const Step& step : steps()) {
      EXPECT_TRUE(step.take(*storage, Durability::kCommit).ok());
      all.push_back(look(*storage));
    }
    return all;
  }
};

class CrashAtEveryChange : public testing::TestWithParam<Ending> {
 protected:
  // What was answered before the disk failed.
  struct Answered {
    std::size_t steps = 0;
    std::size_t durable = 0;  // of them, those up to the last that was not relaxed
  };

  // For each change of the disk: the steps until it fails, the ending, and `check` on what a restart
  // finds.
  void at_every_change(const std::function<Durability(std::size_t step)>& durability,
                       const std::function<void(Storage&, Answered)>& check) {
    std::uint64_t fault = 1;
    for (bool survived = false; !survived && !HasFailure(); ++fault) {
      SCOPED_TRACE("fault at change " + std::to_string(fault));
      ASSERT_LT(fault, 3000U);
      const TemporaryDirectory folder = temporary();
      // Folders that are there already need not be synced, for which this test would wait most of its
      // time.
      for (std::int64_t file = 1; file < 12; ++file) {
        fs::create_directories(DataFolder::look_at(folder.path()).object(file).parent_path());
      }
      FaultyDisk disk;
      disk.fail_from(fault);
      const Answered answered = take_steps(folder.path(), disk, durability);
      survived = !disk.failing();
      end(disk, GetParam(), random_);
      disk.fail_from(1'000'000);
      disk.set_syncs(FaultyDisk::Syncs::kSkipped);
      const auto storage =
          open_storage(folder.path(), {.idle_open_max = 4, .vfs = disk.name(), .on_notice = {}});
      ASSERT_TRUE(storage);
      check(*storage, answered);
    }
    EXPECT_GT(fault, 100U);  // else the faults did not reach the steps
  }

  const std::vector<Scenario::Step> steps_ = Scenario::steps();
  const std::vector<Scenario::Picture> pictures_ = Scenario::pictures();

 private:
  Answered take_steps(const fs::path& folder, const FaultyDisk& disk,
                      const std::function<Durability(std::size_t step)>& durability) {
    Answered answered;
    // A short journal, so that rows move to the databases along the way, and one idle database, so that
    // databases are closed and opened.
    auto storage = open_sqlite_storage(folder, {.idle_open_max = 1,
                                                .vfs = disk.name(),
                                                .on_notice = {},
                                                .journal_bytes_max = 2000,
                                                .journal_bytes_left = 0});
    while (storage.ok() && answered.steps < steps_.size()) {
      const Scenario::Step& step = steps_[answered.steps];
      const Durability how = step.can_relax ? durability(answered.steps) : Durability::kCommit;
      if (!step.take(**storage, how).ok()) break;
      ++answered.steps;
      if (how == Durability::kCommit) answered.durable = answered.steps;
    }
    return answered;
  }

  const unsigned seed_ = std::random_device()();
  const testing::ScopedTrace trace_{__FILE__, __LINE__, "seed " + std::to_string(seed_)};
  std::mt19937 random_{seed_};
};

TEST_P(CrashAtEveryChange, LeavesTheLastCommitOrTheOneInFlight) {
  at_every_change([](std::size_t) { return Durability::kCommit; },
                  [&](Storage& storage, Answered answered) {
                    const Scenario::Picture found = Scenario::look(storage);
                    const Scenario::Picture& last = pictures_[answered.steps];
                    const Scenario::Picture& next =
                        pictures_[std::min(answered.steps + 1, steps_.size())];
                    EXPECT_TRUE(found == last || found == next)
                        << "found " << found << "\nafter " << last << "\nbefore " << next;
                    // The index of alarms agrees with the objects, and all goes on from here.
                    EXPECT_EQ(alarms_of(due(storage)), alarms_of(found));
                    for (const char* id : Scenario::kIds) {
                      ASSERT_TRUE(put(storage, {"x", id}, "after", "z").ok());
                      EXPECT_EQ(*get(storage, {"x", id}, "after"), "z");
                    }
                  });
}

TEST_P(CrashAtEveryChange, LosesOfRelaxedCommitsTheLastOnesOnlyAndSaysSo) {
  int times_lost = 0;
  at_every_change(
      [](std::size_t step) { return step % 4 == 3 ? Durability::kCommit : Durability::kRelaxed; },
      [&](Storage& storage, Answered answered) {
        bool says_so = false;
        for (const char* id : Scenario::kIds) {
          const auto object = storage.open({"x", id}, {});
          ASSERT_TRUE(object.ok());
          says_so = says_so || (*object)->may_miss_changes();
        }
        const Scenario::Picture found = Scenario::look(storage);
        const auto first = pictures_.begin() + static_cast<std::ptrdiff_t>(answered.durable);
        const auto last = pictures_.begin() + static_cast<std::ptrdiff_t>(
                                                  std::min(answered.steps + 1, steps_.size()) + 1);
        EXPECT_NE(std::find(first, last, found), last)
            << "found " << found << "\nno state between " << *first << "\nand " << last[-1];
        const bool lost = found != pictures_[answered.steps] && found != last[-1];
        EXPECT_TRUE(!lost || says_so) << "found " << found;
        times_lost += lost ? 1 : 0;
        EXPECT_EQ(alarms_of(due(storage)), alarms_of(found));
      });
  EXPECT_GT(times_lost, 0) << "else nothing was relaxed";
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
