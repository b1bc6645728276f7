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
using Escape = LinkModel::Escape;

constexpr std::size_t kManySteps = 1'000'000;

class LinkModelTest : public ::testing::Test {
 protected:
  void folder(const std::string& path) { model_.put(path, FileType::kDirectory, ""); }
  void file(const std::string& path) { model_.put(path, FileType::kRegularFile, ""); }
  void link(const std::string& path, const std::string& target) {
    model_.put(path, FileType::kSymbolicLink, target);
  }
  Escape escape(const std::string& path) {
    std::size_t steps = kManySteps;
    return model_.resolve(path, steps).escape;
  }
  /// Of a link at `path` that leads to `target`.
  Escape escape(const std::string& path, const std::string& target) {
    link(path, target);
    return escape(path);
  }

  LinkModel model_;
};

TEST_F(LinkModelTest, CountsFoldersWhereThereAreNoOtherLinks) {
  folder("a");
  folder("d");
  EXPECT_EQ(escape("l", "a"), Escape::kNone);
  EXPECT_EQ(escape("d/l", "../a"), Escape::kNone);
  EXPECT_EQ(escape("d/l", "../a/../d"), Escape::kNone);
  EXPECT_EQ(escape("d/l", ".//../."), Escape::kNone);
  EXPECT_EQ(escape("l", ".."), Escape::kCertain);
  EXPECT_EQ(escape("l", "../a"), Escape::kCertain);
  EXPECT_EQ(escape("d/l", "../a/../../b"), Escape::kCertain);
  EXPECT_EQ(escape("l", "/"), Escape::kCertain);
}

TEST_F(LinkModelTest, GoesUpFromWhereALinkLeads) {
  folder("d");
  folder("d/e");
  link("here", ".");
  EXPECT_EQ(escape("l", "here/here/here/../../../etc/passwd"), Escape::kCertain);
  EXPECT_EQ(escape("l", "here/.."), Escape::kCertain);
  link("deep", "d/e");
  EXPECT_EQ(escape("l", "deep/.."), Escape::kNone);
  EXPECT_EQ(escape("l", "deep/../.."), Escape::kNone);
  EXPECT_EQ(escape("l", "deep/../../.."), Escape::kCertain);
  link("d/e/back", "../..");
  EXPECT_EQ(escape("l", "deep/back/d"), Escape::kNone);
  EXPECT_EQ(escape("l", "deep/back/.."), Escape::kCertain);
}

TEST_F(LinkModelTest, EscapesIfALinkItLeadsThroughDoes) {
  link("out", "..");
  link("via", "out/x");
  EXPECT_EQ(escape("via"), Escape::kCertain);
  EXPECT_EQ(escape("l", "via"), Escape::kCertain);
  EXPECT_EQ(escape("l", "none/../out"), Escape::kPossible);  // not before `none` is there
}

TEST_F(LinkModelTest, TakesWhatIsMissingForAFolder) {
  file("f");
  EXPECT_EQ(escape("l", "none/a/b"), Escape::kNone);
  EXPECT_EQ(escape("l", "none/../f"), Escape::kNone);
  EXPECT_EQ(escape("l", "none/../../f"), Escape::kPossible);
  EXPECT_EQ(escape("l", "f/../../f"), Escape::kPossible);
}

TEST_F(LinkModelTest, FollowsAsManyLinksAsTheKernel) {
  file("0");
  for (int i = 1; i <= 41; ++i) link(std::to_string(i), std::to_string(i - 1));
  EXPECT_EQ(escape("40"), Escape::kNone);
  EXPECT_EQ(escape("41"), Escape::kPossible);  // not before one of them is something else
  link("loop", "loop");
  EXPECT_EQ(escape("loop"), Escape::kPossible);
}

TEST_F(LinkModelTest, StopsWhenThereAreNoStepsLeft) {
  link("s", ".");
  std::string target;
  for (int i = 0; i < 30; ++i) target += "s/";
  link("l", target);
  std::size_t steps = 10;
  EXPECT_NE(model_.resolve("l", steps).escape, Escape::kNone);
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
  EXPECT_EQ(model.resolve("at", steps).escape, Escape::kNone);
  EXPECT_EQ(model.resolve("in", steps).escape, Escape::kUnknown);
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
      const LinkModel::Resolution resolution = model.resolve(link, steps);
      const bool leaves = kernel_leaves(folder.get(), link);
      ASSERT_EQ(resolution.escape == Escape::kCertain, leaves)
          << link << ", seed " << seed_ << ", round " << round;
      ++(leaves ? out : safe);
    }
  }
  EXPECT_GT(safe, 10U) << seed_;
  EXPECT_GT(out, 10U) << seed_;
}

}  // namespace
}  // namespace sw::wasi
