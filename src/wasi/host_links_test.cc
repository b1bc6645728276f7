// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasi/host_links.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <random>
#include <string>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/wasi/tree.h"

namespace sw::wasi {
namespace {

namespace fs = std::filesystem;
using Danger = LinkModel::Danger;

constexpr std::size_t kManySteps = 1'000'000;

class LinkModelTest : public ::testing::Test {
 protected:
  void folder(const std::string& path) { model_.put(path, FileType::kDirectory, ""); }
  void file(const std::string& path) { model_.put(path, FileType::kRegularFile, ""); }
  void link(const std::string& path, const std::string& target) {
    model_.put(path, FileType::kSymbolicLink, target);
  }
  Danger danger(const std::string& path) {
    std::size_t steps = kManySteps;
    return model_.follow(path, steps).danger;
  }
  /// Of a link at `path` that leads to `target`.
  Danger danger(const std::string& path, const std::string& target) {
    link(path, target);
    return danger(path);
  }

  LinkModel model_;
};

TEST_F(LinkModelTest, CountsFoldersWhereThereAreNoOtherLinks) {
  folder("a");
  folder("d");
  EXPECT_EQ(danger("l", "a"), Danger::kNone);
  EXPECT_EQ(danger("d/l", "../a"), Danger::kNone);
  EXPECT_EQ(danger("d/l", "../a/../d"), Danger::kNone);
  EXPECT_EQ(danger("d/l", ".//../."), Danger::kNone);
  EXPECT_EQ(danger("l", ".."), Danger::kReal);
  EXPECT_EQ(danger("l", "../a"), Danger::kReal);
  EXPECT_EQ(danger("d/l", "../a/../../b"), Danger::kReal);
  EXPECT_EQ(danger("l", "/"), Danger::kReal);
}

TEST_F(LinkModelTest, GoesUpFromWhereALinkLeads) {
  folder("d");
  folder("d/e");
  link("here", ".");
  EXPECT_EQ(danger("l", "here/here/here/../../../etc/passwd"), Danger::kReal);
  EXPECT_EQ(danger("l", "here/.."), Danger::kReal);
  link("deep", "d/e");
  EXPECT_EQ(danger("l", "deep/.."), Danger::kNone);
  EXPECT_EQ(danger("l", "deep/../.."), Danger::kNone);
  EXPECT_EQ(danger("l", "deep/../../.."), Danger::kReal);
  link("d/e/back", "../..");
  EXPECT_EQ(danger("l", "deep/back/d"), Danger::kNone);
  EXPECT_EQ(danger("l", "deep/back/.."), Danger::kReal);
}

TEST_F(LinkModelTest, IsAsDangerousAsTheLinksItLeadsThrough) {
  link("out", "..");
  link("via", "out/x");
  EXPECT_EQ(danger("via"), Danger::kReal);
  EXPECT_EQ(danger("l", "via"), Danger::kReal);
  EXPECT_EQ(danger("l", "none/../out"), Danger::kLatent);  // not before `none` is there
}

TEST_F(LinkModelTest, TakesWhatIsMissingForAFolder) {
  file("f");
  EXPECT_EQ(danger("l", "none/a/b"), Danger::kNone);
  EXPECT_EQ(danger("l", "none/../f"), Danger::kNone);
  EXPECT_EQ(danger("l", "none/../../f"), Danger::kLatent);
  EXPECT_EQ(danger("l", "f/../../f"), Danger::kLatent);
}

TEST_F(LinkModelTest, FollowsAsManyLinksAsTheKernel) {
  file("0");
  for (int i = 1; i <= 41; ++i) link(std::to_string(i), std::to_string(i - 1));
  EXPECT_EQ(danger("40"), Danger::kNone);
  EXPECT_EQ(danger("41"), Danger::kLatent);  // not before one of them is something else
  link("loop", "loop");
  EXPECT_EQ(danger("loop"), Danger::kLatent);
}

TEST_F(LinkModelTest, StopsWhenThereAreNoStepsLeft) {
  link("s", ".");
  std::string target;
  for (int i = 0; i < 30; ++i) target += "s/";
  link("l", target);
  std::size_t steps = 10;
  EXPECT_NE(model_.follow("l", steps).danger, Danger::kNone);
  EXPECT_EQ(steps, 0);
}

TEST(LinkModelOfAFolder, KnowsWhatCannotBeRead) {
  HostEntries entries;
  entries["closed"].status.st_mode = S_IFDIR | 0700;
  entries["closed"].opaque = true;
  entries["at"].status.st_mode = S_IFLNK | 0777;
  entries["at"].target = "closed";
  entries["in"].status.st_mode = S_IFLNK | 0777;
  entries["in"].target = "closed/x/../..";
  const LinkModel model(entries);
  std::size_t steps = kManySteps;
  EXPECT_EQ(model.follow("at", steps).danger, Danger::kNone);
  EXPECT_EQ(model.follow("in", steps).danger, Danger::kUnknown);
}

/// Random folders and links on a real file system, whose kernel is the model.
class KernelModel : public ::testing::Test {
 protected:
  KernelModel()
      : parent_(TemporaryDirectory::create(fs::temp_directory_path(), "sw-links-").value()),
        seed_(std::random_device()()),
        random_(seed_) {}

  std::size_t pick(std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_);
  }

  std::string name() { return std::string(1, static_cast<char>('a' + pick(4))); }
  std::string target() {
    std::string path = pick(30) == 0 ? "/" : "";
    for (std::size_t parts = 1 + pick(6); parts > 0; --parts) {
      path += pick(3) == 0 ? ".." : pick(8) == 0 ? "." : name();
      if (parts > 1) path += "/";
    }
    return path;
  }

  void fill(const fs::path& folder, int depth) {
    for (int i = 0; i < 4; ++i) {
      const fs::path path = folder / name();
      std::error_code taken;
      if (pick(2) == 0) fs::create_symlink(target(), path, taken);
      else if (fs::create_directory(path, taken) && depth > 0) fill(path, depth - 1);
    }
  }

  TemporaryDirectory parent_;
  unsigned seed_;
  std::mt19937 random_;
};

TEST_F(KernelModel, AgreesAboutRandomLinks) {
  std::size_t safe = 0;
  std::size_t out = 0;
  for (int round = 0; round < 30; ++round) {
    const fs::path path = parent_.path() / std::to_string(round);
    fs::create_directory(path);
    fill(path, 3);
    const UniqueFd folder(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const LinkModel model(scan_host_folder(folder.get()).value());
    for (const std::string& link : model.links()) {
      std::size_t steps = kManySteps;
      const LinkModel::Way way = model.follow(link, steps);
      const bool leaves = kernel_leaves(folder.get(), link);
      ASSERT_EQ(way.danger == Danger::kReal, leaves)
          << link << ", seed " << seed_ << ", round " << round;
      ++(leaves ? out : safe);
    }
  }
  EXPECT_GT(safe, 10U) << seed_;
  EXPECT_GT(out, 10U) << seed_;
}

}  // namespace
}  // namespace sw::wasi
