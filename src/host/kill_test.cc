// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// A process that is killed at random moments, again and again. SW_KILLS sets how often.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "host/kill_model.h"
#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/unique_fd.h"

namespace sw::kill_model {
namespace {

using Clock = std::chrono::steady_clock;

/// When each operation was answered, in a process that was killed in the end.
std::vector<Clock::time_point> do_and_be_killed(const std::filesystem::path& folder, unsigned seed,
                                                const std::vector<std::string>& rounds,
                                                std::mt19937& random, Clock::time_point& killed) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd from_child(ends[0]);
  UniqueFd to_parent(ends[1]);
  std::vector<std::string> words{SW_HOST_KILL_CHILD, folder.native(), std::to_string(seed)};
  words.insert(words.end(), rounds.begin(), rounds.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  to_parent = UniqueFd();
  std::vector<Clock::time_point> answered;
  char byte = 0;
  const auto wanted = 1 + random() % 12;
  while (answered.size() < wanted && ::read(from_child.get(), &byte, 1) == 1)
    answered.push_back(Clock::now());
  EXPECT_EQ(answered.size(), wanted) << "the child ended by itself";
  for (auto spin = random() % 2'000'000; spin > 0; --spin) asm volatile("");
  killed = Clock::now();
  ::kill(child, SIGKILL);
  while (::read(from_child.get(), &byte, 1) == 1) answered.push_back(Clock::now());
  int status = 0;
  ::waitpid(child, &status, 0);
  return answered;
}

TEST(Killed, NothingAcknowledgedIsLostAndFilesAndMemoryAgree) {
  const char* const setting = std::getenv("SW_KILLS");
  const int kills = setting != nullptr ? std::atoi(setting) : 25;
  const unsigned first_seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(first_seed));
  std::mt19937 random(first_seed);
  const auto folder =
      *TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-kills-");
  State state;
  std::vector<std::string> rounds;
  int losses = 0;
  for (int kill = 0; kill < kills; ++kill) {
    SCOPED_TRACE("kill " + std::to_string(kill));
    const auto seed = static_cast<unsigned>(random());
    Clock::time_point killed;
    const auto answered = do_and_be_killed(folder.path() / "data", seed, rounds, random, killed);
    // All states that may be there: from the last that was safe to the one that was in flight.
    std::vector<State> states{state};
    Operation in_flight;
    std::size_t safe = 0;
    std::mt19937 same(seed);
    for (std::size_t i = 0; i <= answered.size(); ++i) {
      const Operation operation = next(states.back(), same);
      states.push_back(states.back());
      apply(operation, states.back());
      in_flight = operation;
      if (i == answered.size()) break;
      if (!operation.relaxed || killed - answered[i] > kRelaxedDelay) safe = i + 1;
    }
    std::string notes;
    const Host host = Host::open({.data_folder = folder.path() / "data"}).value();
    const auto found = look(host, notes);
    ASSERT_TRUE(found.ok()) << found.error().message;
    std::size_t count = states.size();
    while (count > safe && !may_be(*found, states[count - 1],
                                   count + 1 >= states.size() ? in_flight : Operation{})) {
      --count;
    }
    ASSERT_GT(count, safe) << "no state from " << safe << " to " << states.size() - 1 << "\nfound "
                           << show(*found) << "\nafter " << show(states[answered.size()])
                           << "\nbefore " << show(states.back()) << "\nin flight "
                           << static_cast<int>(in_flight.action) << ' ' << in_flight.sandbox << ' '
                           << in_flight.other;
    --count;
    ASSERT_TRUE(tidy(host, *found, states[count]).ok());
    if (count < answered.size()) {
      ++losses;
      EXPECT_NE(notes.find("may be lost"), std::string::npos);
    }
    state = states[count];
    forget_runs(state);
    rounds.push_back(std::to_string(seed) + ":" + std::to_string(count));
    // The child's arguments stay few.
    if (testing::Test::HasFailure()) break;
  }
  RecordProperty("relaxed_losses", losses);
}

}  // namespace
}  // namespace sw::kill_model
