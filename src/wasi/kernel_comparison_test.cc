// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Random operations on our file system and on a folder of the host's, whose kernel is the model: each answer must
// be the same, and so must the trees at the end.

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/unique_fd.h"
#include "wasi/test_support.h"

namespace sw::wasi {
namespace {

namespace fs = std::filesystem;

constexpr int kRounds = 60;
constexpr int kStepsPerRound = 300;

class KernelComparison : public FileSystemTest {
 protected:
  KernelComparison()
      : folder_(TemporaryDirectory::create(fs::temp_directory_path(), "sw-kernel-").value()),
        seed_(std::random_device()()) {}

  void start_round(unsigned round) {
    random_.seed(seed_ + round);
    const fs::path path = folder_.path() / std::to_string(round);
    fs::create_directory(path);
    host_ = UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    use(standard_layout().build());
    log_.clear();
  }

  std::size_t pick(std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_); }

  /// Short, so that operations meet; never out of the folder, for the host's has things around it.
  std::string path() {
    static constexpr const char* kNames[] = {"a", "b", "c"};
    std::string path;
    std::size_t depth = 0;
    for (std::size_t parts = 1 + pick(3); parts > 0; --parts) {
      const std::size_t kind = pick(12);
      if (!path.empty()) path += pick(10) == 0 ? "//" : "/";
      if (kind == 0) {
        path += ".";
      } else if (kind == 1 && depth > 0) {
        // Through a link this may still go up from somewhere else, but no link here leads up.
        path += "..";
        --depth;
      } else {
        path += kNames[pick(3)];
        ++depth;
      }
    }
    if (pick(8) == 0) path += "/";
    return path;
  }

  /// Links lead down only (see path), or to themselves, or nowhere.
  std::string target() {
    static constexpr const char* kTargets[] = {"a", "b/c", "c/", "a/b", "./b", "none"};
    return kTargets[pick(std::size(kTargets))];
  }

  void step();
  /// What a system call answered; taken at once, before anything else sets errno.
  static Errno host(ssize_t result) { return result < 0 ? errno_from(errno) : Errno::kSuccess; }

  void same(const std::string& what, Errno ours, Errno expected) {
    log_.push_back(fmt::format("{}: {}", what, errno_name(expected)));
    ASSERT_EQ(ours, expected) << what << "\nsteps:\n" << history() << what << "\nseed " << seed_;
  }

  static Errno errno_from(int value) {
    switch (value) {
      case EBUSY: return Errno::kBusy;
      case EXDEV: return Errno::kXdev;
      default: return errno_from_host(value);
    }
  }

  std::string history() const {
    std::string text;
    for (const std::string& line : log_) text += "  " + line + "\n";
    return text;
  }

  void open_and_write(const std::string& path);
  void compare_trees();
  std::map<std::string, std::string> our_listing();
  std::map<std::string, std::string> host_listing(const std::string& prefix);

  TemporaryDirectory folder_;
  unsigned seed_;
  std::mt19937 random_;
  UniqueFd host_;
  std::vector<std::string> log_;
};

void KernelComparison::open_and_write(const std::string& path) {
  OpenFlags flags;
  flags.create = pick(2) == 0;
  flags.exclusive = flags.create && pick(4) == 0;
  flags.truncate = pick(4) == 0;
  flags.directory = !flags.create && pick(6) == 0;
  flags.write = flags.truncate || pick(2) == 0;
  flags.follow = pick(3) == 0 ? Follow::kNo : Follow::kYes;
  int host_flags = O_CLOEXEC | (flags.write ? O_RDWR : O_RDONLY);
  if (flags.create) host_flags |= O_CREAT;
  if (flags.exclusive) host_flags |= O_EXCL;
  if (flags.truncate) host_flags |= O_TRUNC;
  if (flags.directory) host_flags |= O_DIRECTORY;
  if (flags.follow == Follow::kNo) host_flags |= O_NOFOLLOW;
  const UniqueFd fd(::openat(host_.get(), path.c_str(), host_flags, 0666));
  const Errno expected = host(fd ? 0 : -1);
  const auto ours = files().open_at(workspace(), path, flags);
  same(fmt::format("open {} flags {:o}", path, host_flags), ours.error(), expected);
  if (!ours.ok() || !fd || !flags.write || ours->node->type != FileType::kRegularFile) return;
  const std::uint64_t offset = pick(20);
  const std::string text(1 + pick(5), static_cast<char>('a' + pick(26)));
  ASSERT_EQ(::pwrite(fd.get(), text.data(), text.size(), static_cast<off_t>(offset)),
            static_cast<ssize_t>(text.size()));
  ASSERT_EQ(ours->tree->write(*ours->node, offset, as_bytes(text), 1).value(), text.size());
  if (pick(3) == 0) {
    const std::size_t size = pick(25);
    ASSERT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
    ASSERT_EQ(ours->tree->resize(*ours->node, size, 1), Errno::kSuccess);
  }
}

void KernelComparison::step() {
  const std::string one = path();
  const std::string two = path();
  const Place here = workspace();
  const int fd = host_.get();
  switch (pick(9)) {
    case 0:
      return same("mkdir " + one, files().make_directory_at(here, one), host(::mkdirat(fd, one.c_str(), 0777)));
    case 1:
      return same("rmdir " + one, files().remove_directory_at(here, one),
                  host(::unlinkat(fd, one.c_str(), AT_REMOVEDIR)));
    case 2: return same("unlink " + one, files().unlink_at(here, one), host(::unlinkat(fd, one.c_str(), 0)));
    case 3:
      return same(fmt::format("rename {} {}", one, two), files().rename_at(here, one, here, two),
                  host(::renameat(fd, one.c_str(), fd, two.c_str())));
    case 4: {
      const Follow follow = pick(2) == 0 ? Follow::kNo : Follow::kYes;
      const int flags = follow == Follow::kYes ? AT_SYMLINK_FOLLOW : 0;
      return same(fmt::format("link {} {} {}", one, two, flags), files().link_at(here, one, follow, here, two),
                  host(::linkat(fd, one.c_str(), fd, two.c_str(), flags)));
    }
    case 5: {
      const std::string to = target();
      // POSIX and the public WASI tests want ENOTDIR for an existing file with a slash after it, Linux says
      // EEXIST.
      if (one.ends_with('/')) return;
      return same(fmt::format("symlink {} {}", to, one), files().symlink_at(to, here, one),
                  host(::symlinkat(to.c_str(), fd, one.c_str())));
    }
    case 6: {
      char buffer[256];
      const auto length = ::readlinkat(fd, one.c_str(), buffer, sizeof buffer);
      const Errno expected = host(length);
      const auto ours = files().readlink_at(here, one);
      same("readlink " + one, ours.error(), expected);
      if (!ours.ok() || length < 0) return;
      EXPECT_EQ(*ours, std::string(buffer, static_cast<std::size_t>(length)));
      return;
    }
    case 7: {
      struct stat there = {};
      const Follow follow = pick(2) == 0 ? Follow::kNo : Follow::kYes;
      const int flags = follow == Follow::kNo ? AT_SYMLINK_NOFOLLOW : 0;
      const Errno expected = host(::fstatat(fd, one.c_str(), &there, flags));
      const auto ours = files().stat_at(here, one, follow);
      same("stat " + one, ours.error(), expected);
      if (!ours.ok() || expected != Errno::kSuccess) return;
      if (!S_ISDIR(there.st_mode)) {
        EXPECT_EQ(ours->links, there.st_nlink) << one << " after\n" << history();
        EXPECT_EQ(ours->size, static_cast<std::uint64_t>(there.st_size)) << one;
      }
      EXPECT_EQ(ours->type == FileType::kDirectory, S_ISDIR(there.st_mode)) << one;
      EXPECT_EQ(ours->type == FileType::kSymbolicLink, S_ISLNK(there.st_mode)) << one;
      return;
    }
    default: return open_and_write(one);
  }
}

std::map<std::string, std::string> KernelComparison::our_listing() {
  std::map<std::string, std::string> listing;
  const auto visit = [&](const std::string& path, Node& node) {
    listing[path] = node.type == FileType::kDirectory ? "directory"
                    : node.type == FileType::kSymbolicLink
                        ? "link " + node.target
                        : "file " + std::string(as_text(node.content.view().value()));
    return true;
  };
  EXPECT_EQ(workspace_->walk(visit), Errno::kSuccess);
  return listing;
}

std::map<std::string, std::string> KernelComparison::host_listing(const std::string& prefix) {
  std::map<std::string, std::string> listing;
  for (const auto& entry : fs::recursive_directory_iterator(prefix)) {
    const std::string path = entry.path().lexically_relative(prefix);
    listing[path] = entry.is_symlink()     ? "link " + fs::read_symlink(entry.path()).string()
                    : entry.is_directory() ? "directory"
                                           : "file " + read_text_file(entry.path()).value();
  }
  return listing;
}

void KernelComparison::compare_trees() {
  std::uint64_t bytes = 0;
  std::map<const Node*, std::uint64_t> counted;
  std::uint64_t entries = 0;
  const auto count = [&](const std::string&, Node& node) {
    ++entries;
    if (counted.emplace(&node, 0).second) bytes += node.size();
    return true;
  };
  ASSERT_EQ(workspace_->walk(count), Errno::kSuccess);
  EXPECT_EQ(workspace_->usage().entries, entries);
  EXPECT_EQ(workspace_->usage().bytes, bytes);
}

TEST_F(KernelComparison, RandomOperationsAnswerAsTheKernelDoes) {
  for (unsigned round = 0; round < kRounds; ++round) {
    ASSERT_NO_FATAL_FAILURE(start_round(round));
    for (int i = 0; i < kStepsPerRound; ++i) {
      step();
      if (HasFatalFailure()) return;
    }
    ASSERT_EQ(our_listing(), host_listing(folder_.path() / std::to_string(round))) << "seed " << seed_;
    compare_trees();
    if (HasFailure()) FAIL() << "seed " << seed_ << ", round " << round << "\n" << history();
  }
}

}  // namespace
}  // namespace sw::wasi
