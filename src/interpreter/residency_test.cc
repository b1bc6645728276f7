// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Many contexts on disk and few in memory: nothing grows.

#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "interpreter/fake_engine.h"
#include "interpreter/test_worker.h"
#include "object/clock.h"
#include "storage/memory/memory_storage.h"
#include "storage/sqlite/sqlite_storage.h"

// Sanitizers make runs slow and keep freed memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SW_TEST_SANITIZED 1
#else
#define SW_TEST_SANITIZED 0
#endif

namespace sw::interpreter {
namespace {

namespace fs = std::filesystem;

constexpr int kContextsOfOne = 8;
constexpr std::size_t kResidentMax = 64;
constexpr std::size_t kIdleOpenMax = 16;

/// Memory of this process's own; what is mapped from files (code, images) does not count.
std::uint64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stoull(line.substr(8)) << 10;
  }
  return 0;
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd"))
    count += entry.path().empty() ? 0U : 1U;
  return count;
}

struct Language {
  std::string name;
  std::string count;  ///< adds 1 to a counter that may be new; its value is the counter
  int interpreters = 0;
  int runs_in_100 = 0;
};

/// Runs of contexts chosen at random, each of which has to count on.
class Crowd {
 public:
  Crowd(const std::vector<Language>& languages, TestParts& parts)
      : languages_(languages), guests_(parts.guests) {
    for (const Language& language : languages_) {
      // Few runs to be undone, so that each context soon has as many as it will ever have.
      workers_.push_back(std::make_unique<Worker>(
          TestWorker::engine(language.name),
          RuntimeWorkerOptions{.history = {.full = 2, .every = 0}}, parts.parts()));
      counts_.emplace_back(static_cast<std::size_t>(language.interpreters * kContextsOfOne), 0);
    }
  }

  /// Fewer when that takes longer than `time_max`, but not fewer than `runs_min`. Returns how many.
  int run(int runs, int runs_min, std::chrono::seconds time_max) {
    const auto end = std::chrono::steady_clock::now() + time_max;
    for (int i = 0; i < runs; ++i) {
      if (i >= runs_min && std::chrono::steady_clock::now() > end) return i;
      std::size_t language = 0;
      for (int draw = static_cast<int>(random_() % 100); draw >= languages_[language].runs_in_100;
           ++language) {
        draw -= languages_[language].runs_in_100;
      }
      run_one(language, random_() % counts_[language].size());
      if (::testing::Test::HasFailure()) return i;
    }
    return runs;
  }

  unsigned seed() const { return seed_; }

 private:
  void run_one(std::size_t language, std::size_t number) {
    Worker& worker = *workers_[language];
    const std::string key = "sandbox" + std::to_string(number / kContextsOfOne);
    protocol::ExecuteArgs args;
    args.run.context = "c" + std::to_string(number % kContextsOfOne);
    args.run.code = languages_[language].count;
    int& count = counts_[language][number];
    const auto interpreter = worker.interpreter(key).value();
    if (count == 0) {
      const auto made = interpreter->create(args.run.context, "/workspace");
      ASSERT_TRUE(made.ok()) << made.error().message;
    }
    RunOutput printed;
    Result<protocol::ExecuteResponse> response = Error{};
    const auto began = guests_.run(
        {}, [&](executor::GuestPool::Slot&) { response = interpreter->execute(args, printed); });
    ASSERT_TRUE(began.ok()) << began.error().message;
    ASSERT_TRUE(response.ok()) << response.error().message;
    ASSERT_TRUE(response->outcome.value) << languages_[language].name;
    ASSERT_EQ(response->outcome.value->text, std::to_string(++count))
        << key << ' ' << args.run.context;
  }

  const std::vector<Language> languages_;
  executor::GuestPool& guests_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::vector<int>> counts_;
  const unsigned seed_ = std::random_device{}();
  std::mt19937 random_{seed_};
};

TEST(Residency, AThousandContextsTouchedAtRandomTakeNoMoreAndNoMore) {
  // Until each context has had a few runs, what is kept of its versions and read of its file still
  // grows.
  const int warm_up = SW_TEST_SANITIZED ? 300 : 6'000;
  const int runs = SW_TEST_SANITIZED ? 300 : 10'000;
  // Every run is a commit on disk; a slow disk must not make the test endless.
  const int runs_min = SW_TEST_SANITIZED ? 100 : 1'000;
  const std::chrono::seconds time_max{60};
  const auto folder = TemporaryDirectory::create(fs::temp_directory_path(), "sw-crowd-").value();
  const auto storage =
      storage::open_sqlite_storage(folder.path(), {.idle_open_max = kIdleOpenMax}).value();
  const auto clock = object::make_system_clock();
  TestParts parts(*storage, *clock, {.instances_max = kResidentMax});
  Crowd crowd({{"javascript", "globalThis.n = (globalThis.n ?? 0) + 1", 95, 85},
               {"perl", "our $n; $n += 1", 10, 5},
               {"python", "n = globals().get('n', 0) + 1; n", 10, 5},
               {"ruby", "$n = $n.to_i + 1", 10, 5}},
              parts);
  SCOPED_TRACE(crowd.seed());
  const std::size_t descriptors_before = open_descriptors();
  const bool warm = crowd.run(warm_up, runs_min, time_max) == warm_up;
  // What the allocator keeps settles sooner or later; a leak grows in every round.
  constexpr std::uint64_t kGrowthMax = std::uint64_t{48} << 20;
  std::uint64_t bytes_before = 0, bytes_after = 0;
  for (int round = 0; round < 3; ++round) {
    bytes_before = anonymous_bytes();
    crowd.run(runs, runs_min, time_max);
    bytes_after = anonymous_bytes();
    if (!warm || SW_TEST_SANITIZED || bytes_after < bytes_before + kGrowthMax) break;
  }
  EXPECT_LE(parts.residency.stats().instances, kResidentMax);
  EXPECT_GT(parts.residency.stats().evicted, 0u);
  // An open database has three: the file, its log and the log's index. An instance has two, and its
  // slot one; each of the four languages keeps as many slots as it had instances at its most.
  EXPECT_LE(open_descriptors(), descriptors_before + 3 * kIdleOpenMax + (2 + 4) * kResidentMax);
  if (warm && !SW_TEST_SANITIZED) {
    EXPECT_LT(bytes_after, bytes_before + kGrowthMax);
  }
}

TEST(Residency, InterpretersAtWorkAreLeftAloneAndTheOthersGo) {
  storage::MemoryDisk disk{storage::Bodies::kTwice};
  const auto storage = storage::open_memory_storage(disk);
  const auto engine = std::make_shared<FakeEngine>();
  const auto clock = object::make_system_clock();
  TestParts parts(*storage, *clock, {.instances_max = 4});
  Worker worker(engine, {}, parts.parts());
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      const auto interpreter =
          worker.interpreter("k" + std::to_string(caller % 2)).value();  // two callers each
      RunOutput printed;
      for (int i = 0; i < 200; ++i) {
        protocol::ExecuteArgs args;
        args.run.context = std::to_string(i % kContextsOfOne);
        args.run.code = R"({"op":"write","path":"/workspace/f","content":"x"})";
        (void)interpreter->create(args.run.context, "/workspace");
        const auto answer = interpreter->execute(args, printed);
        EXPECT_TRUE(answer.ok());
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_LE(parts.residency.stats().instances, 4u);
  EXPECT_EQ(static_cast<std::size_t>(engine->alive), parts.residency.stats().instances);
}

}  // namespace
}  // namespace sw::interpreter
