// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// kill -9 of a process that saves without pause, at moments nobody chose: what another process
// finds is the memory after a run whose save was reported, or the one in flight.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <random>

#include "sandbox_workers/base/unique_fd.h"
#include "snapshot/snapshot_store.h"
#include "snapshot/test_guest.h"
#include "storage/sqlite/sqlite_storage.h"

namespace sw::snapshot {
namespace {

constexpr std::size_t kImagePages = 64;

/// The memory after run `n` in place of that after run `n - 1`: some pages change, and it grows now
/// and then.
void run(Guest& guest, std::uint32_t n) {
  std::mt19937 random(n);
  if (n % 7 == 0)
    guest.grow_to((kImagePages + n % 200) * kPageBytes > guest.memory().size()
                      ? (kImagePages + n % 200) * kPageBytes
                      : guest.memory().size());
  for (int i = 0; i < 8; ++i) {
    std::string text(1 + random() % 500, ' ');
    for (char& c : text) c = static_cast<char>(random());
    guest.write(kPageBytes + random() % (guest.memory().size() - 2 * kPageBytes), text);
  }
  guest.write(0, std::string_view(reinterpret_cast<const char*>(&n), sizeof n));
}

std::uint32_t runs_of(const Guest& guest) {
  std::uint32_t n = 0;
  std::memcpy(&n, guest.memory().data(), sizeof n);
  return n;
}

struct Process {
  std::unique_ptr<storage::Storage> storage;
  std::unique_ptr<storage::ObjectStorage> object;
  std::unique_ptr<SnapshotStore> store;
  Bytes image = make_image(kImagePages);

  explicit Process(const std::filesystem::path& folder) {
    storage = must(storage::open_sqlite_storage(folder, {}));
    object = must(storage->open({"interpreter", "i"}, {}));
    store = must(SnapshotStore::open(*object, {}));
  }

  struct Context {
    Guest guest;
    LiveMemory live;
  };
  Context load() {
    Guest guest(image);
    if (!store->has("c")) return {std::move(guest), must(store->begin("c", kBuild))};
    const VersionInfo newest = must(store->latest("c"));
    guest.grow_to(newest.memory_bytes);
    Restored restored = must(restore_into(*store, "c", newest.id, kBuild, image, guest.memory()));
    return {std::move(guest), std::move(restored.live)};
  }
};

/// The child: goes on where the context is and reports each save, until it is killed.
[[noreturn]] void save_forever(const std::filesystem::path& folder, int report) {
  Process process(folder);
  auto [guest, live] = process.load();
  for (std::uint32_t n = runs_of(guest) + 1;; ++n) {
    run(guest, n);
    const auto ranges = guest.dirty();
    const auto saved =
        process.store->save(live, must(live.encode({.memory = SpanPageSource(guest.memory()),
                                                    .image = process.image,
                                                    .changed = ranges,
                                                    .host_tables = {},
                                                    .time_ms = n})));
    if (!saved.ok() || ::write(report, &n, sizeof n) != sizeof n) ::_exit(1);
    guest.note_saved();
  }
}

TEST(SnapshotKill, ContextIsAsAfterTheLastReportedSaveOrTheNext) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto folder =
      must(TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-kill-"));
  Guest expected(make_image(kImagePages));
  std::uint32_t expected_runs = 0;
  for (int kill = 0; kill < 15; ++kill) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    UniqueFd reports(ends[0]);
    UniqueFd report(ends[1]);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) save_forever(folder.path(), report.get());
    report = UniqueFd();

    std::uint32_t reported = expected_runs;
    for (std::size_t saves = 1 + random() % 30; saves > 0; --saves) {
      ASSERT_EQ(::read(reports.get(), &reported, sizeof reported),
                static_cast<ssize_t>(sizeof reported));
    }
    // Not at a save's end, but somewhere within the next ones.
    using Clock = std::chrono::steady_clock;
    for (const auto end = Clock::now() + std::chrono::microseconds(random() % 5000);
         Clock::now() < end;) {
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    for (std::uint32_t n = 0;
         ::read(reports.get(), &n, sizeof n) == static_cast<ssize_t>(sizeof n);)
      reported = n;

    Process process(folder.path());
    auto [guest, live] = process.load();
    const std::uint32_t found = runs_of(guest);
    ASSERT_GE(found, reported);
    ASSERT_LE(found, reported + 1);
    while (expected_runs < found) run(expected, ++expected_runs);
    ASSERT_EQ(guest.memory(), expected.memory());
  }
}

}  // namespace
}  // namespace sw::snapshot
