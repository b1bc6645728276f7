// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <thread>

#include "cli/backup_command.h"
#include "cli/interrupt.h"
#include "cli/process_data_folder.h"
#include "cli/progress.h"
#include "cli/statuses.h"
#include "cli/terminal.h"
#include "cli/units.h"
#include "engine/watchdog.h"
#include "sandbox_workers/base/files.h"
#include "storage/sqlite/sqlite_storage.h"

namespace sw::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Units, DurationsHaveUnitsOrAreSeconds) {
  EXPECT_EQ(parse_duration("10s").value(), 10s);
  EXPECT_EQ(parse_duration("500ms").value(), 500ms);
  EXPECT_EQ(parse_duration("2m").value(), 2min);
  EXPECT_EQ(parse_duration("1.5").value(), 1500ms);
  EXPECT_EQ(parse_duration("none").value(), 0ns);
}

TEST(Units, WhatIsNoDurationIsRefused) {
  for (const char* text : {"", "s", "-1s", "1 s", "0", "1d", "inf", "nan", "1e30", "10sx"}) {
    EXPECT_FALSE(parse_duration(text).ok()) << text;
  }
}

TEST(Units, SizesArePowersOf1024) {
  EXPECT_EQ(parse_bytes("512M").value(), 512u << 20);
  EXPECT_EQ(parse_bytes("1G").value(), 1u << 30);
  EXPECT_EQ(parse_bytes("64K").value(), 65536u);
  EXPECT_EQ(parse_bytes("4G").value(), std::uint64_t{4} << 30);
  for (const char* text : {"", "G", "5G", "-1", "1T", "12MB"})
    EXPECT_FALSE(parse_bytes(text).ok()) << text;
}

TEST(Units, ShownSizesAreReadable) {
  EXPECT_EQ(show_bytes(216'400'000), "216 MB");
  EXPECT_EQ(show_bytes(1'400'000), "1.4 MB");
  EXPECT_EQ(show_bytes(999), "1.0 kB");
}

TEST(Progress, TheBarIsNeverFullBeforeTheStepIsOver) {
  EXPECT_THAT(ProgressDisplay::bar_line("compiling", 20s, 40s),
              StartsWith("[############............] compiling"));
  EXPECT_THAT(ProgressDisplay::bar_line("compiling", 400s, 40s),
              HasSubstr(".] compiling … 400 of about 40 s"));
  EXPECT_EQ(ProgressDisplay::bar_line("checking", 2s, 0s), "checking … 2 s");
}

TEST(TerminalSink, RemembersTheFirstFailureAndGivesUpOnce) {
  // Its stdout is this test's; only what cannot be written is tried.
  const int saved = ::dup(STDOUT_FILENO);
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  int given_up = 0;
  Streams streams({});
  TerminalSink sink(streams, [&] { ++given_up; });
  EXPECT_EQ(sink.write(wasi::Stream::kStdout, {}), wasi::Errno::kSuccess);
  EXPECT_FALSE(sink.stdout_failure());
  ::dup2(full, STDOUT_FILENO);
  for (int i = 0; i < 99; ++i)
    EXPECT_EQ(sink.write(wasi::Stream::kStdout, as_bytes("x")), wasi::Errno::kNospc);
  EXPECT_FALSE(sink.gave_up());
  for (int i = 0; i < 99; ++i) (void)sink.write(wasi::Stream::kStdout, as_bytes("x"));
  ::dup2(saved, STDOUT_FILENO);
  ::close(saved);
  ::close(full);
  EXPECT_TRUE(sink.gave_up());
  EXPECT_EQ(given_up, 1);
  EXPECT_EQ(sink.stdout_failure(), ENOSPC);
}

TEST(Printable, HasNoControlCharacters) { EXPECT_EQ(printable("a\nb\x1b[1m\x7fü"), "a?b?[1m?ü"); }

TEST(BackupCommand, CopiesADataFolderOnce) {
  const TemporaryDirectory folder =
      *TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-cli-");
  {
    const auto storage = storage::open_sqlite_storage(folder.path() / "data", {});
    ASSERT_TRUE(storage.ok());
    auto object = *(*storage)->open({"a", "1"}, {});
    ASSERT_TRUE(object
                    ->transact([](storage::Transaction& transaction) {
                      return transaction.put(1, "key", {});
                    })
                    .ok());
  }
  Streams streams({});
  Signals signals;
  const Caller caller{.streams = streams, .interrupts = signals};
  const auto back_up = [&] {
    ProcessDataFolder data(folder.path() / "data", caller);
    return backup_command(caller, data, folder.path() / "copy");
  };
  EXPECT_EQ(*back_up(), 0);
  EXPECT_TRUE(storage::open_sqlite_storage(folder.path() / "copy", {}).ok());
  EXPECT_EQ(back_up().error().code, ErrorCode::kInvalidArgument);
}

TEST(SignalScope, MayEndAsSoonAsItBegan) {
  for (int i = 0; i < 300; ++i) const SignalScope scope;
}

TEST(SignalScope, RequestsAStopAlthoughOtherThreadsRun) {
  const engine::Watchdog watchdog;
  const SignalScope scope;
  ASSERT_EQ(::kill(::getpid(), SIGINT), 0);
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (!scope.token().stop_requested() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  EXPECT_TRUE(scope.token().stop_requested());
}

TEST(SignalScope, EndsTheProcessWhenNothingStops) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto never_stop = [] {
    const SignalScope scope(1s);
    while (true) {
      ::kill(::getpid(), SIGTERM);  // however often it is sent
      ::pause();
    }
  };
  EXPECT_EXIT(never_stop(), ::testing::ExitedWithCode(kStatusCancelled),
              "could not stop the run within 1 s");
}

}  // namespace
}  // namespace sw::cli
