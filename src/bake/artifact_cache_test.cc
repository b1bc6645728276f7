// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "bake/artifact_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "sandbox_workers/base/files.h"

namespace sw::bake {
namespace {

namespace fs = std::filesystem;

/// As damage does it: the record is not told.
void overwrite_first_byte(const fs::path& file) {
  std::fstream(file, std::ios::in | std::ios::out).put('b');
}

struct CacheFixture : ::testing::Test {
  TemporaryDirectory folder =
      TemporaryDirectory::create(fs::temp_directory_path(), "sw-cache-").value();
  ArtifactCache cache = ArtifactCache::open(folder.path() / "cache").value();
  std::atomic<int> made = 0;

  Result<fs::path> get() {
    return cache.get(
        "thing", std::vector<std::string>{"content"},
        [&](const fs::path& path) -> Result<void> {
          ++made;
          SW_CHECK_OK(write_file_atomically(path / "more", as_bytes("also good")));
          return write_file_atomically(path / "content", as_bytes("good"));
        },
        no_progress);
  }

  /// Does `harm` to a whole artifact; expects that it is noticed, and made anew.
  void expect_noticed(const std::string& what, const std::function<void(const fs::path&)>& harm) {
    const fs::path path = get().value();
    made = 0;
    harm(path);
    EXPECT_FALSE(cache.find("thing").ok()) << what;
    const auto again = get();
    ASSERT_TRUE(again.ok()) << what << ": " << again.error().message;
    EXPECT_EQ(made, 1) << what;
    EXPECT_EQ(read_text_file(*again / "content").value(), "good") << what;
  }
};
using ArtifactCacheTest = CacheFixture;

TEST_F(ArtifactCacheTest, MakesOnceAndFindsAgain) {
  EXPECT_EQ(cache.find("thing").error().code, ErrorCode::kNotFound);
  const fs::path path = get().value();
  EXPECT_EQ(get().value(), path);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(read_text_file(path / "content").value(), "good");
}

TEST_F(ArtifactCacheTest, ADamagedFileIsNoticedAndMadeAnew) {
  const fs::path path = get().value();
  overwrite_first_byte(path / "content");
  EXPECT_EQ(cache.find("thing").error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(read_text_file(get().value() / "content").value(), "good");
  EXPECT_EQ(made, 2);
}

TEST_F(ArtifactCacheTest, AMissingFileADamagedRecordAndAFolderWithoutOneAreMadeAnew) {
  const fs::path path = get().value();
  fs::remove(path / "content");
  EXPECT_TRUE(get().ok());
  ASSERT_TRUE(write_file_atomically(path / "digests", as_bytes("nonsense")).ok());
  EXPECT_TRUE(get().ok());
  fs::remove(path / "digests");
  EXPECT_TRUE(get().ok());
  EXPECT_EQ(made, 4);
}

TEST_F(ArtifactCacheTest, ATouchedButEqualFileIsHashedAndKept) {
  const fs::path path = get().value();
  const timespec times[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (path / "content").c_str(), times, 0), 0);
  EXPECT_TRUE(get().ok());
  EXPECT_TRUE(get().ok());
  EXPECT_EQ(made, 1);
}

TEST_F(ArtifactCacheTest, ManyMayRenewTheRecordAtOnce) {
  const fs::path path = get().value();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        fs::last_write_time(path / "content", fs::file_time_type::clock::now());
        EXPECT_TRUE(cache.find("thing").ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(get().ok());
  EXPECT_EQ(made, 1);
}

TEST_F(ArtifactCacheTest, OnlyFilesCanBeMade) {
  for (const bool link : {true, false}) {
    const auto odd = cache.get(
        "odd", {},
        [&](const fs::path& path) -> Result<void> {
          if (link) fs::create_symlink("/etc/passwd", path / "content");
          else fs::create_directory(path / "content");
          return {};
        },
        no_progress);
    EXPECT_EQ(odd.error().code, ErrorCode::kCorrupt);
  }
}

TEST_F(ArtifactCacheTest, AFailedMakeLeavesNothing) {
  const auto failed = cache.get(
      "other", {},
      [](const fs::path&) -> Result<void> {
        return Error{ErrorCode::kUnavailable, "no network", 0};
      },
      no_progress);
  EXPECT_EQ(failed.error().message, "no network");
  EXPECT_EQ(cache.find("other").error().code, ErrorCode::kNotFound);
  int entries = 0;
  for (const auto& entry : fs::directory_iterator(folder.path() / "cache" / "artifacts")) {
    entries += entry.is_directory() ? 1 : 0;
  }
  EXPECT_EQ(entries, 0);
}

TEST_F(ArtifactCacheTest, ManyAtOnceMakeItOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const ArtifactCache own = ArtifactCache::open(folder.path() / "cache").value();
      EXPECT_TRUE(own.get(
                         "shared", {},
                         [&](const fs::path& path) {
                           ++made;
                           return write_file_atomically(path / "content", as_bytes("good"));
                         },
                         no_progress)
                      .ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
}

TEST_F(ArtifactCacheTest, PruneKeepsTheNewest) {
  for (const char* name : {"image-x-1", "image-x-2", "image-x-3", "image-y-1"}) {
    ASSERT_TRUE(cache
                    .get(
                        name, {},
                        [](const fs::path& path) {
                          return write_file_atomically(path / "f", as_bytes("1"));
                        },
                        no_progress)
                    .ok());
    const fs::path path = cache.find(name).value();
    static int age = 0;
    fs::last_write_time(path, fs::file_time_type::clock::now() + std::chrono::hours(++age));
  }
  cache.prune("image-x-", 1);
  EXPECT_FALSE(cache.find("image-x-1").ok());
  EXPECT_FALSE(cache.find("image-x-2").ok());
  EXPECT_TRUE(cache.find("image-x-3").ok());
  EXPECT_TRUE(cache.find("image-y-1").ok());
}

TEST_F(ArtifactCacheTest, AFolderOthersCanWriteIsRefused) {
  ASSERT_EQ(::chmod((folder.path() / "cache").c_str(), 0777), 0);
  EXPECT_EQ(ArtifactCache::open(folder.path() / "cache").error().code, ErrorCode::kPermission);
}

TEST_F(ArtifactCacheTest, ARecordThatWasCutAnywhereIsNoticed) {
  const std::string whole = read_text_file(get().value() / "digests").value();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    expect_noticed(fmt::format("{} bytes", size),
                   [&](const fs::path& path) { fs::resize_file(path / "digests", size); });
  }
}

TEST_F(ArtifactCacheTest, ARecordWithoutOneOfItsLinesIsNoticed) {
  const std::string whole = read_text_file(get().value() / "digests").value();
  int lines = 0;
  for (std::size_t begin = 0; begin < whole.size(); ++lines) {
    const std::size_t end = whole.find('\n', begin) + 1;
    expect_noticed(whole.substr(begin, end - begin), [&](const fs::path& path) {
      // Its own lines: those of the artifact before have other identities.
      std::ifstream in(path / "digests");
      std::string text;
      std::string line;
      for (int i = 0; std::getline(in, line); ++i) {
        if (i != lines) text += line + '\n';
      }
      ASSERT_TRUE(write_file_atomically(path / "digests", as_bytes(text)).ok());
    });
    begin = end;
  }
  EXPECT_EQ(lines, 3);
}

TEST_F(ArtifactCacheTest, LinesThatAreNoneAreNoticed) {
  const std::string zeros(64, '0');
  for (const std::string& line :
       {zeros + " 1 1 1 1 ../thing\n", zeros + " 1 1 1 1 \n", zeros + " 1 1 1 content\n",
        zeros + " -1 1 1 1 x\n", zeros + " 99999999999999999999 1 1 1 x\n", zeros + "\n",
        std::string("\n"), std::string(64, 'G') + " 1 1 1 1 x\n", std::string("\0\n", 2),
        std::string(2 << 20, 'x')}) {
    expect_noticed(line.substr(0, 100), [&](const fs::path& path) {
      std::ofstream(path / "digests", std::ios::app) << line;
    });
  }
}

TEST_F(ArtifactCacheTest, DamageOfEachKindToEachFileIsNoticed) {
  for (const char* name : {"content", "more", "digests"}) {
    const auto of = [name](const char* what) { return fmt::format("{} {}", name, what); };
    expect_noticed(of("changed"),
                   [name](const fs::path& path) { overwrite_first_byte(path / name); });
    expect_noticed(of("removed"), [name](const fs::path& path) { fs::remove(path / name); });
    expect_noticed(of("emptied"),
                   [name](const fs::path& path) { fs::resize_file(path / name, 0); });
    expect_noticed(of("longer"), [name](const fs::path& path) {
      std::ofstream(path / name, std::ios::app) << "x";
    });
    expect_noticed(of("a link"), [&](const fs::path& path) {
      const fs::path outside = folder.path() / "outside";
      fs::remove(outside);
      fs::rename(path / name, outside);
      fs::create_symlink(outside, path / name);
    });
    // Opening one to read would wait for ever.
    expect_noticed(of("a pipe"), [name](const fs::path& path) {
      fs::remove(path / name);
      ASSERT_EQ(::mkfifo((path / name).c_str(), 0600), 0);
    });
    expect_noticed(of("a folder"), [name](const fs::path& path) {
      fs::remove(path / name);
      fs::create_directory(path / name);
    });
    expect_noticed(of("writable by others"), [name](const fs::path& path) {
      fs::permissions(path / name, fs::perms::others_write, fs::perm_options::add);
    });
  }
}

TEST_F(ArtifactCacheTest, WhatHasNoDigestIsNotUsed) {
  expect_noticed("a file more", [](const fs::path& path) { std::ofstream(path / "stray") << "x"; });
  expect_noticed("a folder more",
                 [](const fs::path& path) { fs::create_directory(path / "stray"); });
  // What a process leaves that dies while it renews the record.
  const fs::path path = get().value();
  made = 0;
  std::ofstream(path / ".digests.XXXXXX") << "x";
  EXPECT_TRUE(get().ok());
  EXPECT_EQ(made, 0);
}

TEST_F(ArtifactCacheTest, AnArtifactNeedsTheFilesThatAreAskedFor) {
  (void)get().value();
  EXPECT_EQ(cache.find("thing", std::vector<std::string>{"content", "more"}).ok(), true);
  EXPECT_EQ(cache.find("thing", std::vector<std::string>{"content", "missing"}).error().code,
            ErrorCode::kCorrupt);
}

TEST_F(ArtifactCacheTest, WhatCannotBeLookedAtIsNotTakenForDamaged) {
  const fs::path path = get().value();
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int free = ::dup(STDERR_FILENO);
  ::close(free);
  for (rlim_t more = 0; more < 6; ++more) {
    const rlimit few{static_cast<rlim_t>(free) + more, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    const auto found = get();
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(found.ok() ? ErrorCode::kUnavailable : found.error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(made, 1) << "with " << more << " descriptors";
  }
  EXPECT_TRUE(cache.find("thing").ok());
}

TEST_F(ArtifactCacheTest, AFolderThatIsALinkOrThatOthersCanWriteIsNoticed) {
  expect_noticed("a link", [&](const fs::path& path) {
    fs::rename(path, folder.path() / "elsewhere");
    fs::create_directory_symlink(folder.path() / "elsewhere", path);
  });
  expect_noticed("a link that leads nowhere", [&](const fs::path& path) {
    fs::remove_all(path);
    fs::create_directory_symlink(folder.path() / "nowhere", path);
  });
  expect_noticed("writable by others", [](const fs::path& path) {
    fs::permissions(path, fs::perms::group_write, fs::perm_options::add);
  });
  expect_noticed("a file", [](const fs::path& path) {
    fs::remove_all(path);
    std::ofstream(path) << "x";
  });
}

}  // namespace
}  // namespace sw::bake
